"""One AWS call as it passes the gate, and answers of the gate's own."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

Environ = dict[str, Any]


class Refusal(Exception):
    """The gate refuses a call with AWS's own error; `legacy` is the code that SQS's older protocol knows it by."""

    def __init__(
        self, code: str, message: str, *, legacy: str | None = None, status: int = 400, extra: Any = None
    ) -> None:
        super().__init__(message)
        self.code, self.legacy, self.status, self.extra = code, legacy, status, extra or {}


@dataclass(frozen=True)
class Answer:
    """A whole HTTP answer."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether it is a success."""
        return self.status.startswith("2")

    def send(self, start_response: Any) -> Iterable[bytes]:
        """Hands it to the WSGI server."""
        start_response(self.status, self.headers)
        return [self.body]


def read_body(environ: Environ) -> bytes:
    """The request's body, which stays readable for whoever comes next."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return bytes(body)


def call(application: Any, environ: Environ, body: bytes | None = None) -> Answer:
    """Runs an application on a request, with another body where one is given, and takes its whole answer."""
    if body is not None:
        environ = {**environ, "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
    started: list[Any] = []
    parts = application(environ, lambda status, headers, exc_info=None: started.extend((status, headers)))
    try:
        content = b"".join(parts)
    finally:
        if hasattr(parts, "close"):
            parts.close()
    return Answer(started[0], started[1], content)


def answer_json(value: Any, status: str = "200 OK", headers: Iterable[tuple[str, str]] = ()) -> Answer:
    """A JSON answer of the gate's own."""
    body = json.dumps(value).encode()
    return Answer(
        status,
        [
            ("Content-Type", "application/x-amz-json-1.0"),
            ("Content-Length", str(len(body))),
            ("x-amzn-RequestId", str(uuid4())),
            *headers,
        ],
        body,
    )


def answer_refusal(refusal: Refusal) -> Answer:
    """A refusal in the form that AWS's JSON protocols use."""
    headers = [("x-amzn-ErrorType", refusal.code)]
    if refusal.legacy:
        headers.append(("x-amzn-query-error", f"{refusal.legacy};Sender"))
    value = {"__type": refusal.code, "message": str(refusal), "Message": str(refusal), **refusal.extra}
    return answer_json(value, f"{refusal.status} Error", headers)
