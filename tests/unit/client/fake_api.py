"""A small sift API on loopback whose jobs move only when a test says so."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

KEY = "sift_test_secret"
_ENDED = ("done", "partial", "failed", "cancelled")


@dataclass
class Fault:
    """An answer given instead of the right one, `times` times, to requests whose path matches."""

    pattern: str
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1


class FakeApi:
    """`url`, `requests` (method and path with query) and `headers` (of each request) are for the tests to read."""

    def __init__(self, page_size: int = 4) -> None:
        self.page_size = page_size
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[Any] = []
        self.faults: list[Fault] = []
        self.contents: dict[int, tuple[str, bytes]] = {}
        self.fetched: dict[str, Any] = {"content": "# Größe\n", "meta": {"status": 200}}
        self.slots: list[dict[str, Any]] = []
        self.status = "queued"
        self.holds = True  # whether `wait` is heeded
        self.on_look: Callable[[], None] = lambda: None
        self.changed = threading.Condition()
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fail_next(self, pattern: str, status: int, problem: dict[str, Any] | None = None, **rest: Any) -> None:
        body = json.dumps({"status": status, **problem}).encode() if problem is not None else b"<h1>no</h1>"
        self.faults.append(Fault(pattern, status, body, **rest))

    def finish(self, index: int, body: str | bytes = "# Text", media_type: str = "text/markdown") -> None:
        raw = body.encode() if isinstance(body, str) else body
        meta = {"elapsed_ms": 1250}
        self._end(index, status="done", media_type=media_type, bytes=len(raw), chars=len(body), meta=meta)
        self.contents[index] = (media_type, raw)

    def fail(
        self, index: int, code: str = "http_error", detail: str = "The server said no.", status: int = 404
    ) -> None:
        error = {"code": code, "detail": detail, "hint": "Check the address.", "status": status}
        self._end(index, status="failed", error=error)

    def _end(self, index: int, **values: Any) -> None:
        with self.changed:
            self.slots[index] |= values
            statuses = [slot["status"] for slot in self.slots]
            self.status = "running"
            if all(status in ("done", "failed") for status in statuses):
                failed = statuses.count("failed")
                self.status = "done" if not failed else "failed" if failed == len(statuses) else "partial"
            self.changed.notify_all()

    def make_job(self, targets: list[dict[str, Any]]) -> None:
        self.slots = [
            {"index": index, "id": target.get("id"), "url": target["url"], "status": "pending", "attempts": 0}
            for index, target in enumerate(targets)
        ]
        self.status = "queued"

    def job(self) -> dict[str, Any]:
        statuses = [slot["status"] for slot in self.slots]
        counts = {name: statuses.count(name) for name in ("pending", "running", "done", "failed", "cancelled")}
        return {"id": "job_1", "status": self.status, "counts": {"total": len(statuses), **counts}}


class _Handler(BaseHTTPRequestHandler):
    api: FakeApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        api = self.api
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        api.requests.append(f"{self.command} {self.path}")
        api.headers.append({name.lower(): value for name, value in self.headers.items()})
        for fault in api.faults:
            if fault.times and re.search(fault.pattern, self.path):
                fault.times -= 1
                self._send(fault.status, fault.body, fault.headers)
                return
        if self.headers.get("authorization") != f"Bearer {KEY}":
            self._problem(401, "unauthenticated", "The key is not valid.", "Pass a valid key.")
            return
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = unquote(parts.path)
        if self.command == "POST" and path == "/v1/jobs":
            sent = json.loads(body)
            api.bodies.append(sent)
            api.make_job(sent["targets"])
            self._json(api.job(), 202)
        elif self.command == "POST" and path == "/v1/fetch":
            api.bodies.append(json.loads(body))
            self._json(api.fetched)
        elif path == "/v1/jobs/job_1/cancel":
            api.status = "cancelled"
            for slot in api.slots:
                slot["status"] = "cancelled" if slot["status"] == "pending" else slot["status"]
            self._json(api.job())
        elif path == "/v1/jobs/job_1":
            api.on_look()
            self._wait(query)
            self._json(api.job())
        elif path == "/v1/jobs/job_1/targets":
            start = int(query.get("cursor", "0"))
            end = start + api.page_size
            slots = [self._with_content(slot) if "content" in query else slot for slot in api.slots[start:end]]
            self._json({"targets": slots, "next": str(end) if end < len(api.slots) else None})
        elif found := re.fullmatch(r"/v1/jobs/job_1/targets/(\d+)(/content)?", path):
            index = int(found[1])
            if not found[2]:
                self._json(self._with_content(api.slots[index]))
                return
            media_type, content = api.contents[index]
            self._send(200, content, {"content-type": media_type})
        else:
            self._problem(404, "not_found", "There is no such job.", "Check the id.")

    def _wait(self, query: dict[str, str]) -> None:
        api, before = self.api, self.api.job()
        with api.changed:
            api.changed.wait_for(
                lambda: not api.holds or api.status in _ENDED or api.job() != before,
                timeout=float(query.get("wait", 0)),
            )

    def _with_content(self, slot: dict[str, Any]) -> dict[str, Any]:
        found = self.api.contents.get(slot["index"])
        return slot | ({"content": found[1].decode()} if found else {})

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode(), {"content-type": "application/json"})

    def _problem(self, status: int, code: str, detail: str, hint: str) -> None:
        problem = {"status": status, "code": code, "detail": detail, "hint": hint, "request_id": "req-1"}
        self._send(status, json.dumps(problem).encode(), {"content-type": "application/problem+json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in ({"content-length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass
