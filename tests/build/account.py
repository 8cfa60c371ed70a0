"""What built functions need around them: the services of the template on a local cloud, a key, a page, events."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sift.clock import SystemClock
from sift.services.keys import KeyService
from sift.store.dynamo import DynamoStore
from sift_client.local.cloud import Cloud
from sift_client.local.document import read_document
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint
from tests.build.built import ROOT

PAGE = b"<html><head><title>The pier</title></head><body><article><h1>The pier</h1><p>" + b"It is long. " * 60
#: By function: the event that it is started with.
EVENTS: Mapping[str, str] = {
    "ApiFunction": "api-status",
    "AssembleFunction": "assemble-job",
    "FetchFunction": "fetch-batch",
    "FetchNowFunction": "fetch_now-page",
    "InferenceFunction": "inference-batch",
    "NotifyFunction": "notify-batch",
    "ScheduleFunction": "schedule-batch",
    "SweepFunction": "sweep-schedule",
}


class Account:
    """Resources of the template without its functions, a caller's key and one for events."""

    def __init__(self, page_url: str) -> None:
        self._page_url = page_url
        self.cloud = Cloud()
        document = read_document(ROOT / "template.yaml", {})
        naming = Naming(document, "built", self.cloud.account, self.cloud.url, "http://127.0.0.1:9")
        self.blueprint = make_blueprint(document, naming)
        self.cloud.provision(self.blueprint)
        self.table: str = naming.ref("JobsTable")
        store = DynamoStore(self.cloud.client("dynamodb"), self.table)
        keys = KeyService(store, SystemClock())
        self.key = asyncio.run(keys.create(tenant="acme", actor="ann"))
        self._event_key = asyncio.run(keys.create(tenant="acme", actor="timer", events=True))

    def environment(self, function: str) -> dict[str, str]:
        """The template's variables of a function, with this account's names."""
        address = self._page_url.removeprefix("http://").rstrip("/")
        own = self.blueprint.functions[function].environment
        guard = {"GUARD_ALLOW": address} if "GUARD_ALLOW" in own else {}
        gateway = {"GATEWAY_URL": f"{self._page_url}v1"} if function == "InferenceFunction" else {}
        key = {"EVENT_KEY_ID": self._event_key.split("_")[1]} if "EVENT_KEY_ID" in own else {}
        return {**own, **guard, **gateway, **key, "AWS_ENDPOINT_URL": self.cloud.url}

    def event(self, function: str) -> dict[str, Any]:
        """The function's event, from a caller that is known, about a page that is there."""
        event: dict[str, Any] = json.loads((ROOT / "events" / f"{EVENTS[function]}.json").read_text(encoding="utf-8"))
        if "headers" in event:
            event["headers"]["authorization"] = f"Bearer {self.key}"
        if function == "FetchNowFunction":
            event["body"] = json.dumps({"url": self._page_url, "options": {"mode": "article"}})
        return event


@contextmanager
def open_account() -> Iterator[Account]:
    """An account, closed at the end."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        account = Account(f"http://127.0.0.1:{server.server_port}/")
        try:
            yield account
        finally:
            account.cloud.close()
            server.shutdown()
