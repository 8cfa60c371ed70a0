"""The HTTP API: routes a request, invokes the function, answers as API Gateway would."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from http.client import responses
from typing import Any
from urllib.parse import unquote

from werkzeug.wsgi import ClosingIterator

from sift_client.local.function import InvokeRefused, Outcome, RequestTooLarge
from sift_client.local.payload import BadAnswer, Request, Response, make_event, read_answer
from sift_client.local.routes import Routes, describe_route
from sift_client.local.webserver import LOOPBACK, WebServer

REQUEST_BYTES = 10 * 1024 * 1024  # HTTP API quotas: payload size
HEADER_BYTES = 10240  # HTTP API quotas: request line and headers together
INTEGRATION_SECONDS = 30.0  # HTTP API quotas: longest integration timeout

Invoke = Callable[[str, str], Outcome]


class Front:
    """Serves the API at `url`; `invoke` takes a function's logical id and an event as JSON text."""

    def __init__(
        self, port: int, account: str, invoke: Invoke, longest: float = INTEGRATION_SECONDS, host: str = LOOPBACK
    ) -> None:
        self._routes = Routes([])
        self._account = account
        self._invoke = invoke
        self._longest = longest
        self._api_id = "local"
        self._answering = 0
        self._changed = threading.Condition()
        self._server = WebServer(self._serve, port, host)
        self.url = self._server.url
        self.port = self._server.port

    def start(self, routes: Routes) -> None:
        """Begins to answer."""
        self._routes = routes
        self._server.start()

    def close(self) -> None:
        """Takes no more requests."""
        self._server.close()

    def wait_idle(self, seconds: float) -> bool:
        """Waits until every request has its answer; says whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._answering == 0, seconds)

    def _serve(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self._changed:
            self._answering += 1
        try:
            response = self._answer(environ)
        except BaseException:
            self._leave()
            raise
        headers = [*response.headers, ("content-length", str(len(response.body)))]
        start_response(f"{response.status} {responses.get(response.status, 'Unknown')}", headers)
        return ClosingIterator([] if environ["REQUEST_METHOD"] == "HEAD" else [response.body], self._leave)

    def _leave(self) -> None:
        with self._changed:
            self._answering -= 1
            self._changed.notify_all()

    def _answer(self, environ: dict[str, Any]) -> Response:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        if size > REQUEST_BYTES:
            # Read all the same, so that the client sees the answer rather than a broken connection.
            _discard(environ["wsgi.input"], size)
            return _refuse(413, "Request Entity Too Large")
        if "CONTENT_LENGTH" in environ:
            body = environ["wsgi.input"].read(size)
        else:
            body = environ["wsgi.input"].read(REQUEST_BYTES + 1) if environ.get("wsgi.input_terminated") else b""
        if len(body) > REQUEST_BYTES:
            return _refuse(413, "Request Entity Too Large")
        request = _read_request(environ, body)
        line = len(environ.get("REQUEST_URI", "")) + len(request.method)
        if line + sum(len(name) + len(value) for name, value in request.headers) > HEADER_BYTES:
            return _refuse(431, "Request Header Fields Too Large")
        found = self._routes.find(request.method, request.path)
        if found is None:
            return _refuse(404, "Not Found")
        route, parameters = found
        event = make_event(request, describe_route(route), parameters, self._api_id, self._account)
        response = self._run(
            route.function, json.dumps(event, ensure_ascii=False), min(route.timeout or self._longest, self._longest)
        )
        return Response(
            response.status,
            [*response.headers, ("apigw-requestid", event["requestContext"]["requestId"])],
            response.body,
        )

    def _run(self, function: str, event: str, seconds: float) -> Response:
        future: Future[Outcome] = Future()

        def invoke() -> None:
            try:
                future.set_result(self._invoke(function, event))
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                future.set_exception(error)

        # The function runs on when the gateway gives up, so it needs a thread that nobody waits for.
        threading.Thread(target=invoke, daemon=True).start()
        try:
            outcome = future.result(seconds)
            if outcome.failed:
                return _refuse(500, "Internal Server Error")
            return read_answer(outcome.value)
        except TimeoutError:
            return _refuse(503, "Service Unavailable")
        except RequestTooLarge:
            return _refuse(413, "Request Entity Too Large")
        except InvokeRefused:
            return _refuse(503, "Service Unavailable")
        except BadAnswer:
            return _refuse(500, "Internal Server Error")


def _read_request(environ: dict[str, Any], body: bytes) -> Request:
    uri = environ.get("REQUEST_URI") or environ.get("RAW_URI") or "/"
    path, _, query = uri.partition("?")
    headers = [
        (key[5:].replace("_", "-"), value)
        for key, value in environ.items()
        if key.startswith("HTTP_") and isinstance(value, str)
    ]
    headers += [
        (name, environ[key])
        for name, key in (("Content-Type", "CONTENT_TYPE"), ("Content-Length", "CONTENT_LENGTH"))
        if environ.get(key)
    ]
    return Request(
        environ["REQUEST_METHOD"], unquote(path) or "/", query, headers, body,
        environ.get("SERVER_PROTOCOL", "HTTP/1.1"), environ.get("REMOTE_ADDR", "127.0.0.1"),
    )  # fmt: skip


def _discard(stream: Any, size: int) -> None:
    while size > 0:
        part = stream.read(min(size, 1 << 16))
        if not part:
            return
        size -= len(part)


def _refuse(status: int, message: str) -> Response:
    return Response(status, [("content-type", "application/json")], json.dumps({"message": message}).encode())
