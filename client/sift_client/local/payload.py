"""HTTP API payload format 2.0: a request as the event a function gets, and a function's answer as a response.

Source: "Create AWS Lambda proxy integrations for HTTP APIs" in the API Gateway guide.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

# API Gateway decides by content type alone whether a body goes to the function as text.
_TEXT_TYPES = {"application/json", "application/xml", "application/javascript", "application/graphql"}
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "content-length", "date"}


@dataclass(frozen=True)
class Request:
    """What the front took in. `headers` in order, names as sent; `path` decoded; `query` raw."""

    method: str
    path: str
    query: str
    headers: list[tuple[str, str]]
    body: bytes
    protocol: str
    source_ip: str


@dataclass(frozen=True)
class Response:
    """What goes out."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class BadAnswer(Exception):
    """A function's answer that API Gateway cannot read."""


def make_event(
    request: Request, route_key: str, parameters: dict[str, str], api_id: str, account: str
) -> dict[str, Any]:
    """The event of a request that a route has matched; `parameters` are its path parameters."""
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for name, value in request.headers:
        key = name.lower()
        if key == "cookie":
            cookies += [cookie.strip() for cookie in value.split(";")]
        else:
            headers[key] = f"{headers[key]},{value}" if key in headers else value
    query: dict[str, str] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    now = time.time()
    host = headers.get("host", "")
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": request.path,
        "rawQueryString": request.query,
        "headers": headers,
        "requestContext": {
            "accountId": account,
            "apiId": api_id,
            "domainName": host,
            "domainPrefix": host.split(".")[0],
            "http": {
                "method": request.method,
                "path": request.path,
                "protocol": request.protocol,
                "sourceIp": request.source_ip,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": uuid.uuid4().hex[:15] + "=",
            "routeKey": route_key,
            "stage": "$default",
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = cookies
    if query:
        event["queryStringParameters"] = query
    if parameters:
        event["pathParameters"] = parameters
    if request.body:
        event["body"], event["isBase64Encoded"] = _encode_body(request.body, headers.get("content-type"))
    return event


def read_answer(answer: Any) -> Response:
    """A function's answer as a response; without a `statusCode` the whole answer is the body of a 200.

    Raises BadAnswer for what API Gateway answers with a 500.
    """
    if not isinstance(answer, dict) or "statusCode" not in answer:
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        return Response(200, [("content-type", "application/json")], text.encode())
    status = _read_status(answer["statusCode"])
    body = answer.get("body")
    if body is None:
        body = ""
    if not isinstance(body, str):
        raise BadAnswer("body must be a string")
    try:
        content = base64.b64decode(body, validate=True) if answer.get("isBase64Encoded") is True else body.encode()
    except ValueError:
        raise BadAnswer("body is not base64") from None
    headers = answer.get("headers") or {}
    cookies = answer.get("cookies") or []
    if not isinstance(headers, dict) or not isinstance(cookies, list):
        raise BadAnswer("headers must be a mapping and cookies a list")
    out = [(str(name).lower(), _as_text(value)) for name, value in headers.items()]
    out = [(name, value) for name, value in out if name not in _HOP_BY_HOP]
    if any("\r" in name + value or "\n" in name + value for name, value in out):
        raise BadAnswer("line break in a header")
    if content and all(name != "content-type" for name, _ in out):
        out.append(("content-type", "text/plain;charset=UTF-8"))
    out += [("set-cookie", str(cookie)) for cookie in cookies]
    return Response(status, out, content)


def _read_status(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isdigit():
        raise BadAnswer("statusCode must be a number")
    status = int(value)
    if not 100 <= status <= 599:
        raise BadAnswer("statusCode is out of range")
    return status


def _encode_body(body: bytes, content_type: str | None) -> tuple[str, bool]:
    media_type = (content_type or "text/plain").split(";")[0].strip().lower()
    if media_type.startswith("text/") or media_type in _TEXT_TYPES or media_type.endswith(("+json", "+xml")):
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
