"""Webhooks from a submission to a receiver that checks them with the `standardwebhooks` package."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from sift.clock import SystemClock
from sift.services.webhook_secrets import WebhookSecrets
from sift.targets import Content, FetchOptions
from tests.integration.api.stage import NOT_THERE, Stage, submit_refused
from tests.integration.api.test_functions import fetch_function, notify_function

URL = "https://example.com/"
EVENTS = ["job.started", "target.done", "target.failed", "job.ended"]
TOKEN = "Bearer planted-t0ken"


class Receiver(ThreadingHTTPServer):
    """Keeps what is posted to it, and answers with `status`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/hooks?key=planted"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((dict(self.headers.items()), body))
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    class Pipeline:
        def __init__(self, settings: Any, answerer: Any) -> None:
            pass

        async def run(self, url: str, options: FetchOptions, deadline_s: float, *, gone: Any = None) -> Content:
            if url.endswith("404"):
                raise NOT_THERE
            return Content(url.encode(), "text/plain")

    monkeypatch.setattr("sift.content.pipeline.Pipeline", Pipeline)
    server = Receiver()
    monkeypatch.setenv("GUARD_ALLOW", server.address)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def new_secret(stage: Stage, overlap_seconds: int = 3600) -> str:
    return asyncio.run(WebhookSecrets(stage.store, SystemClock()).renew("acme", "ann", overlap_seconds))


def submit(stage: Stage, receiver: Receiver, *urls: str, **webhook: Any) -> Any:
    body = {"targets": [{"url": url} for url in urls or [URL]], "webhook": {"url": receiver.url, **webhook}}
    reply = stage.request("POST", "/v1/jobs", body)
    assert reply.status == 202, reply.raw
    return reply.json


def status(stage: Stage, job_id: str) -> Any:
    return stage.request("GET", f"/v1/jobs/{job_id}").json["webhook"]


def test_every_event_is_posted_and_a_receiver_can_check_it(stage: Stage, receiver: Receiver) -> None:
    secret = new_secret(stage)
    headers, metadata = {"Authorization": TOKEN, "X-Team": "search"}, {"run": "7"}
    job = submit(stage, receiver, URL, f"{URL}404", events=EVENTS, headers=headers, metadata=metadata)
    shown = {"url": receiver.url.partition("?")[0], "events": EVENTS, "last_status": None, "last_error": None}
    assert job["webhook"] == {**shown, "state": "pending"}
    fetch_function(stage)
    assert notify_function(stage) == []
    found = [Webhook(secret).verify(body, headers) for headers, body in receiver.posts]
    assert sorted(event["type"] for event in found) == sorted(EVENTS)
    assert {event["data"]["job_id"] for event in found} == {job["id"]}
    assert all(event["data"]["metadata"] == metadata for event in found)
    for sent, _ in receiver.posts:
        sent = {name.lower(): value for name, value in sent.items()}
        assert (sent["authorization"], sent["x-team"]) == (TOKEN, "search")
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(receiver.posts[0][1] + b" ", receiver.posts[0][0])
    assert status(stage, job["id"]) == {**shown, "state": "delivered", "last_status": 200}
    listed = stage.request("GET", "/v1/jobs").json["jobs"]
    assert [one["webhook"]["state"] for one in listed] == ["delivered"]


def test_both_secrets_are_good_while_they_change(stage: Stage, receiver: Receiver) -> None:
    old = new_secret(stage)
    new = new_secret(stage)
    submit(stage, receiver)
    fetch_function(stage)
    notify_function(stage)
    ((headers, body),) = receiver.posts
    for secret in (old, new):
        assert Webhook(secret).verify(body, headers)["type"] == "job.ended"


@pytest.mark.parametrize(
    ("answer", "kept", "shown"),
    [
        (500, 1, {"state": "retrying", "last_status": 500, "last_error": "http_error"}),
        (302, 1, {"state": "retrying", "last_status": 302, "last_error": "redirected"}),
        (410, 0, {"state": "failed", "last_status": 410, "last_error": "gone"}),
    ],
)
def test_what_a_receiver_answers_is_seen_in_the_job(
    stage: Stage, receiver: Receiver, answer: int, kept: int, shown: dict[str, Any]
) -> None:
    new_secret(stage)
    receiver.status = answer
    job = submit(stage, receiver)
    fetch_function(stage)
    assert len(notify_function(stage)) == kept
    assert status(stage, job["id"]).items() >= shown.items()
    assert len(receiver.posts) == 1


def test_an_address_that_became_private_is_given_up(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_secret(stage)
    job = submit(stage, receiver)
    fetch_function(stage)
    monkeypatch.setenv("GUARD_ALLOW", "")
    assert notify_function(stage) == []
    assert status(stage, job["id"]).items() >= {"state": "failed", "last_error": "blocked_address"}.items()
    assert not receiver.posts
    sqs = stage.deployment.client("sqs")
    (letter,) = sqs.receive_message(QueueUrl=stage.given_up_url, MessageAttributeNames=["All"])["Messages"]
    assert json.loads(letter["Body"])["job"] == job["id"]
    assert letter["MessageAttributes"]["reason"]["StringValue"] == "blocked_address"


@pytest.mark.parametrize(
    ("webhook", "code"),
    [
        ({"url": "http://127.0.0.1:9/"}, "blocked_address"), ({"url": "http://169.254.169.254/"}, "blocked_address"),
        ({"url": "https://localhost/"}, "blocked_address"), ({"url": "http://[::1]/"}, "blocked_address"),
        ({"url": "https://m:x@example.com"}, "invalid_url"), ({"url": "https://example.com:25/"}, "blocked_address"),
        ({"url": "ftp://example.com/"}, "invalid_webhook"), ({}, "invalid_webhook"), ("x", "invalid_webhook"),
        ({"url": URL, "events": []}, "invalid_webhook"), ({"url": URL, "events": ["job.paused"]}, "invalid_webhook"),
        ({"url": URL, "headers": {"Cookie": "a=1"}}, "invalid_webhook"), ({"url": URL, "more": 1}, "invalid_webhook"),
        ({"url": URL, "headers": {"Host": "a"}}, "invalid_webhook"),
        ({"url": URL, "headers": {"webhook-signature": "v1,x"}}, "invalid_webhook"),
        ({"url": URL, "headers": {"X-Forwarded-For": "10.0.0.1"}}, "invalid_webhook"),
        ({"url": URL, "headers": {"X-A": "a\r\nX-B: b"}}, "invalid_webhook"),
        ({"url": URL, "headers": {"X-A": "1", "x-a": "2"}}, "invalid_webhook"),
        ({"url": URL, "headers": {f"X-{n}": "1" for n in range(11)}}, "invalid_webhook"),
        ({"url": URL, "metadata": {"": "x"}}, "invalid_webhook"), ({"url": URL}, "no_webhook_secret"),
    ],
)  # fmt: skip
def test_a_webhook_that_can_not_be_is_refused_at_once(stage: Stage, webhook: Any, code: str) -> None:
    reply = submit_refused(stage, {"targets": [{"url": URL}], "webhook": webhook})
    assert (reply.status, reply.code) == (422, code)
