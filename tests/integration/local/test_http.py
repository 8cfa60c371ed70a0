"""The HTTP API: routing, payload format 2.0 both ways, and API Gateway's limits."""

from __future__ import annotations

import base64
import json
import threading

import pytest

from tests.integration.local.project import Project, Start, http_event, request

ECHO = """
def lambda_handler(event, context):
    return event
"""
# Answers with whatever JSON the body holds.
MIRROR = """
import json
def lambda_handler(event, context):
    return json.loads(event["body"])
"""


def test_event_has_payload_format_2(project: Project, start: Start) -> None:
    project.add_function("Echo", ECHO, Events=http_event("POST", "/v1/{id}/parts/{rest+}"))
    stack = start()
    url = f"{stack.url}/v1/a%20b/parts/c/d?x=1&x=2&empty=&y=%C3%A9"
    event = request(url, "POST", b'{"a":1}', {"Content-Type": "application/json", "Cookie": "a=1; b=2"}).json()
    assert event["version"] == "2.0"
    assert event["routeKey"] == "POST /v1/{id}/parts/{rest+}"
    assert event["rawPath"] == "/v1/a b/parts/c/d"
    assert event["rawQueryString"] == "x=1&x=2&empty=&y=%C3%A9"
    assert event["queryStringParameters"] == {"x": "1,2", "empty": "", "y": "é"}
    assert event["pathParameters"] == {"id": "a b", "rest": "c/d"}
    assert event["cookies"] == ["a=1", "b=2"]
    assert "cookie" not in event["headers"]
    assert event["headers"]["content-type"] == "application/json"
    assert (event["body"], event["isBase64Encoded"]) == ('{"a":1}', False)
    context = event["requestContext"]
    assert context["http"]["method"] == "POST"
    assert context["http"]["sourceIp"] == "127.0.0.1"
    assert context["stage"] == "$default"
    assert context["requestId"]


@pytest.mark.parametrize(
    ("content_type", "body", "encoded"),
    [
        ("text/html; charset=utf-8", "é".encode(), False),
        ("application/problem+json", b"{}", False),
        ("application/octet-stream", b"plain", True),
        ("application/x-www-form-urlencoded", b"a=1", True),
        ("text/plain", b"\xff\xfe", True),
    ],
)
def test_body_is_base64_by_content_type(
    project: Project, start: Start, content_type: str, body: bytes, encoded: bool
) -> None:
    project.add_function("Echo", ECHO, Events=http_event())
    event = request(start().url + "/", "POST", body, {"Content-Type": content_type})
    # `/` has no rest for a greedy parameter to take.
    assert event.status == 404
    event = request(start().url + "/x", "POST", body, {"Content-Type": content_type}).json()
    assert event["isBase64Encoded"] is encoded
    assert (base64.b64decode(event["body"]) if encoded else event["body"].encode()) == body


def test_routes_go_by_exactness(project: Project, start: Start) -> None:
    for name, method, path in [
        ("Exact", "GET", "/jobs/new"),
        ("Parameter", "GET", "/jobs/{id}"),
        ("Greedy", "ANY", "/jobs/{proxy+}"),
    ]:
        project.add_function(name, f"def lambda_handler(e, c): return {name!r}", Events=http_event(method, path))
    stack = start()
    assert request(stack.url + "/jobs/new").body == b"Exact"
    assert request(stack.url + "/jobs/x").body == b"Parameter"
    assert request(stack.url + "/jobs/x/y").body == b"Greedy"
    assert request(stack.url + "/jobs/x", "DELETE").body == b"Greedy"
    missing = request(stack.url + "/other")
    assert (missing.status, missing.json()) == (404, {"message": "Not Found"})


def test_default_route_takes_the_rest(project: Project, start: Start) -> None:
    project.add_function("Default", ECHO, Events={"All": {"Type": "HttpApi"}})
    event = request(start().url + "/any/thing").json()
    assert event["routeKey"] == "$default"
    assert "pathParameters" not in event


def test_answers_are_read_as_format_2(project: Project, start: Start) -> None:
    project.add_function("Mirror", MIRROR, Events=http_event())
    url = start().url + "/x"

    def answer(value: object) -> object:
        return request(url, "POST", json.dumps(value).encode(), {"Content-Type": "application/json"})

    full = answer(
        {
            "statusCode": "201",
            "headers": {"X-A": 1, "Content-Type": "image/png"},
            "cookies": ["a=1", "b=2"],
            "body": base64.b64encode(b"\x89PNG").decode(),
            "isBase64Encoded": True,
        }
    )
    assert (full.status, full.body, full.headers["x-a"]) == (201, b"\x89PNG", "1")
    assert full.headers.get_all("set-cookie") == ["a=1", "b=2"]
    inferred = answer({"hello": "world"})
    assert (inferred.status, inferred.json()) == (200, {"hello": "world"})
    assert inferred.headers["content-type"] == "application/json"
    assert answer("text").body == b"text"
    for bad in (
        {"statusCode": "many"},
        {"statusCode": 200, "body": {"not": "text"}},
        {"statusCode": 200, "headers": ["no"]},
        {"statusCode": 200, "body": "%%%", "isBase64Encoded": True},
    ):
        refused = answer(bad)
        assert (refused.status, refused.json()) == (500, {"message": "Internal Server Error"}), bad


def test_request_over_10_mb_is_refused(project: Project, start: Start) -> None:
    project.add_function("Echo", "def lambda_handler(e, c): return 'in'", Events=http_event())
    stack = start()
    refused = request(stack.url + "/x", "POST", b"x" * (10 * 1024 * 1024 + 1), {"Content-Type": "text/plain"})
    assert (refused.status, refused.json()) == (413, {"message": "Request Entity Too Large"})
    assert stack.environments() == {"Echo": []}


def test_event_over_6_mb_is_refused(project: Project, start: Start) -> None:
    project.add_function("Echo", "def lambda_handler(e, c): return 'in'", Events=http_event())
    url = start().url + "/x"
    # 5 MB of bytes fit the gateway, and become 6.7 MB of base64 that Lambda does not take.
    body = b"x" * (5 * 1024 * 1024)
    assert request(url, "POST", body, {"Content-Type": "text/plain"}).status == 200
    assert request(url, "POST", body, {"Content-Type": "application/octet-stream"}).status == 413


def test_response_over_6_mb_is_an_error(project: Project, start: Start) -> None:
    source = "def lambda_handler(e, c): return 'x' * int(e['queryStringParameters']['n'])"
    project.add_function("Big", source, Events=http_event())
    stack = start()
    assert len(request(f"{stack.url}/x?n=6000000").body) == 6000000
    refused = request(f"{stack.url}/x?n=6300000")
    assert (refused.status, refused.json()) == (500, {"message": "Internal Server Error"})
    assert "exceeded maximum allowed payload size" in (stack.log_dir / "Big.log").read_text()


def test_headers_over_10_kb_are_refused(project: Project, start: Start) -> None:
    project.add_function("Echo", ECHO, Events=http_event())
    assert request(start().url + "/x", headers={"X-Long": "x" * 10240}).status == 431


def test_gateway_gives_up_while_the_function_runs_on(project: Project, start: Start) -> None:
    source = """
    import time, pathlib
    def lambda_handler(event, context):
        time.sleep(1)
        pathlib.Path("done").touch()
    """
    project.add_function("Slow", source, Events=http_event())
    stack = start(integration_seconds=0.3)
    refused = request(stack.url + "/x")
    assert (refused.status, refused.json()) == (503, {"message": "Service Unavailable"})
    stack.drain()
    assert (project.root / "functions/Slow/done").exists()


def test_function_error_is_a_500(project: Project, start: Start) -> None:
    project.add_function("Broken", "def lambda_handler(e, c): raise ValueError('secret')", Events=http_event())
    refused = request(start().url + "/x")
    assert (refused.status, refused.json()) == (500, {"message": "Internal Server Error"})


def test_throttled_function_is_a_503(project: Project, start: Start) -> None:
    source = """
    import time
    def lambda_handler(event, context):
        time.sleep(4)
    """
    project.add_function("One", source, Events=http_event(), ReservedConcurrentExecutions=1)
    stack = start()
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(request(stack.url + "/x").status)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 503, 503]


def test_added_route_and_function_are_served(project: Project, start: Start) -> None:
    project.add_function("Old", "def lambda_handler(e, c): return 'old'", Events=http_event("GET", "/old"))
    first = start()
    assert request(first.url + "/new").status == 404
    project.add_function("New", "def lambda_handler(e, c): return 'new'", Events=http_event("GET", "/new"))
    second = start()
    assert request(second.url + "/old").body == b"old"
    assert request(second.url + "/new").body == b"new"
