"""Every refusal of the API: its status, its code, and that nothing is left of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from sift import bootstrap
from tests.integration.api.stage import Reply, Stage, read_event

URL = "https://example.com/"
GOOD = {"targets": [{"url": URL}]}
DEEP = "[" * 200_000 + "]" * 200_000


def submit(stage: Stage, body: Any, **values: Any) -> Reply:
    """A submission that is refused, and of which nothing is stored."""
    before = stage.stored()
    reply = stage.request("POST", "/v1/jobs", body, **values)
    assert stage.stored() == before
    return reply


@pytest.mark.parametrize(
    "body",
    [
        None, "", " ", "{", "not json", '{"targets": [}', "[]", "null", "7", '"text"', "true", '[{"url": "https://a.example"}]',
        '{"targets": NaN}', '{"targets": [{"url": "https://a.example"}], "window": Infinity}', '{"window": -Infinity}',
        DEEP, '{"targets": ' + DEEP + "}", '{"a":' * 100_000 + "1" + "}" * 100_000, "{'targets': []}",
        '{"targets": [{"url": "https://a.example"}]} trailing', "\ufeff" + json.dumps(GOOD), "targets=https://a.example",
    ],
)  # fmt: skip
def test_what_can_not_be_read(stage: Stage, body: str | None) -> None:
    reply = submit(stage, body)
    assert (reply.status, reply.code) == (400, "malformed_json")


@pytest.mark.parametrize("data", [b"\xff\xfe", json.dumps(GOOD).encode("utf-16"), b'{"targets": "\xe9"}', b"\x00"])
def test_what_is_not_utf8(stage: Stage, data: bytes) -> None:
    reply = submit(stage, data, in_base64=True)
    assert (reply.status, reply.code) == (400, "malformed_json")


def test_a_body_that_says_it_is_base64_and_is_not(stage: Stage) -> None:
    event = read_event("api-submit")
    event["headers"]["authorization"] = f"Bearer {stage.key}"
    event |= {"body": "%%%", "isBase64Encoded": True}
    before = stage.stored()
    reply = stage.send(event)
    assert (reply.status, reply.code) == (400, "malformed_json")
    assert stage.stored() == before


def test_a_body_in_base64_is_read(stage: Stage) -> None:
    assert stage.request("POST", "/v1/jobs", json.dumps(GOOD), in_base64=True).status == 202


@pytest.mark.parametrize("media_type", ["application/x-www-form-urlencoded", "text/plain", "", "nonsense"])
def test_whatever_a_client_calls_it_a_body_is_json(stage: Stage, media_type: str) -> None:
    assert stage.request("POST", "/v1/jobs", GOOD, headers={"content-type": media_type}).status == 202


@pytest.mark.parametrize("body", [{"targets": []}, {}, {"targets": None}, {"targets": "https://a.example"}])
def test_no_targets(stage: Stage, body: Any) -> None:
    reply = submit(stage, body)
    assert (reply.status, reply.code) == (422, "no_targets")


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ({}, "url"), ({"url": ""}, "url"), ({"url": "ftp://example.com"}, "url"), ({"url": "example.com"}, "url"),
        ({"url": "javascript:alert(1)"}, "url"), ({"url": "https://"}, "url"), ({"url": 7}, "url"), ({"url": None}, "url"),
        ({"url": URL + "a" * 9_000}, "url"), ({"url": "https://example.com/\ud800"}, "url"), ({"url": URL, "id": ""}, "id"),
        ({"url": URL, "id": "\udfff"}, "id"), ({"url": URL, "priority": 1}, "priority"),
    ],
)  # fmt: skip
def test_an_invalid_target_is_named(stage: Stage, target: dict[str, Any], field: str) -> None:
    body = json.dumps({"targets": [{"url": URL}, {"url": URL}, target]})
    reply = submit(stage, body)
    assert (reply.status, reply.code, reply.json["index"]) == (422, "invalid_target", 2)
    assert reply.json["fields"][0]["field"] == f"targets.2.{field}"
    assert f"targets.2.{field}" in reply.json["detail"]


@pytest.mark.parametrize("target", ["https://example.com/", 7, None, ["https://example.com/"]])
def test_a_target_that_is_no_object(stage: Stage, target: Any) -> None:
    reply = submit(stage, {"targets": [target]})
    assert (reply.status, reply.code, reply.json["index"]) == (422, "invalid_target", 0)


@pytest.mark.parametrize(
    "body",
    [
        {"targets": [{"url": URL, "options": {"mode": "links"}}]}, {"targets": [{"url": URL, "options": {"mode": "meta"}}]},
        {"targets": [{"url": URL, "options": {"grep": "x"}}]}, {"targets": [{"url": URL, "options": {"jq": "."}}]},
        {"targets": [{"url": URL, "options": {"headers": {"Cookie": "a"}}}]}, {"targets": [{"url": URL, "options": 7}]},
        {**GOOD, "options": {"question": "why?"}}, {**GOOD, "options": {"recover": True}},
        {**GOOD, "options": {"context": 3}}, {**GOOD, "webhook": "https://example.com/hook"}, {**GOOD, "options": None},
    ],
)  # fmt: skip
def test_an_option_that_is_not_there_is_refused_and_not_ignored(stage: Stage, body: Any) -> None:
    reply = submit(stage, body)
    assert (reply.status, reply.code) == (422, "unsupported_option")
    assert reply.json["fields"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0}, {"window": 33}, {"window": "many"}, {"fresh": "maybe"}, {"metadata": {"a": {"b": "c"}}},
        {"metadata": {str(n): "x" for n in range(17)}}, {"metadata": {"a": "\ud83d"}}, {"priority": 1}, {"Targets": []},
    ],
)  # fmt: skip
def test_any_other_field(stage: Stage, wrong: dict[str, Any]) -> None:
    reply = submit(stage, json.dumps({**GOOD, **wrong}))
    assert (reply.status, reply.code) == (422, "invalid_request")
    assert next(iter(wrong)) in reply.json["detail"]


@pytest.mark.parametrize("body", [{"requests": []}, {"requests": [{"path": "/v1/chat/completions", "body": {}}]}])
def test_inference_is_not_configured(stage: Stage, body: Any) -> None:
    reply = submit(stage, body)
    assert (reply.status, reply.code) in {(403, "kind_disabled"), (422, "no_targets")}
    assert submit(stage, {**GOOD, **body}).code == "kind_disabled"


def test_too_many_targets(stage: Stage) -> None:
    most = int(stage.environ["TARGETS_PER_JOB"])
    reply = submit(stage, {"targets": [{"url": f"{URL}{n}"} for n in range(most + 1)]})
    assert (reply.status, reply.code, reply.json["limit"]) == (422, "too_many_targets", most)
    assert stage.request("POST", "/v1/jobs", {"targets": [{"url": f"{URL}{n}"} for n in range(most)]}).status == 202


def test_a_key_may_allow_more(stage: Stage) -> None:
    key = stage.new_key("large", limits={"targets_per_job": 250})
    body = {"targets": [{"url": f"{URL}{n}"} for n in range(250)]}
    assert stage.request("POST", "/v1/jobs", body, key=key).status == 202


def test_a_body_that_is_too_large(stage: Stage) -> None:
    body = json.dumps({**GOOD, "metadata": {"a": "x" * 5_000_000}})
    reply = submit(stage, body)
    assert (reply.status, reply.code) == (413, "request_too_large")
    assert submit(stage, body, in_base64=True).code == "request_too_large"


def test_an_idempotency_key_that_is_too_long(stage: Stage) -> None:
    reply = submit(stage, GOOD, headers={"idempotency-key": "k" * 256})
    assert (reply.status, reply.code) == (422, "invalid_request")
    assert "Idempotency-Key" in reply.json["detail"]
    assert stage.request("POST", "/v1/jobs", GOOD, headers={"idempotency-key": "k" * 255}).status == 202


# who


def wrong_credentials(stage: Stage) -> list[dict[str, str]]:
    key = stage.key
    shapes = [
        "", "Bearer", "Bearer ", f"bearer{key}", f"Basic {key}", key, "Bearer null", "Bearer sift_", f"Bearer {key[:-1]}",
        f"Bearer {key}0", f"Bearer {key} {key}", f"Bearer {key},{key}", f"Token {key}", f"Bearer Bearer {key}",
        "Bearer " + "x" * 10_000, f"Bearer {key[:18]}{'0' * 64}", "Bearer \x00", "Bearer ключ", f"Bearer {key.upper()}",
    ]  # fmt: skip
    return [{}, *({"authorization": shape} for shape in shapes), {"x-api-key": ""}, {"x-api-key": f"Bearer {key}"}]


def test_whoever_is_not_known_learns_nothing(stage: Stage) -> None:
    job_id = stage.submit(URL)
    before = stage.stored()
    bodies = set()
    for headers in wrong_credentials(stage):
        for method, path, body in (
            ("POST", "/v1/jobs", "{"), ("GET", f"/v1/jobs/{job_id}", None), ("GET", "/v1/jobs/nonsense", None),
            ("POST", f"/v1/jobs/{job_id}/cancel", None), ("GET", "/v1/nothing", None),
        ):  # fmt: skip
            reply = stage.request(method, path, body, key=None, headers=headers)
            assert (reply.status, reply.code) == (401, "unauthenticated"), (headers, path)
            assert reply.headers["www-authenticate"] == "Bearer"
            bodies.add(reply.raw)
    assert len(bodies) == 1
    assert stage.stored() == before


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER  {}"])
def test_a_bearer_key_is_taken(stage: Stage, form: str) -> None:
    for name in ("authorization", "Authorization"):
        headers = {name: form.format(stage.key)}
        assert stage.request("GET", "/v1/jobs/x", key=None, headers=headers).status == 404


@pytest.mark.parametrize("name", ["x-api-key", "X-Api-Key"])
def test_an_api_key_header_is_taken(stage: Stage, name: str) -> None:
    assert stage.request("GET", "/v1/jobs/x", key=None, headers={name: stage.key}).status == 404


def test_a_key_that_has_expired(stage: Stage) -> None:
    assert stage.get("/v1/jobs/x", key=stage.new_key(expires_at=1)).code == "unauthenticated"


# caps


def test_the_caps(stage: Stage) -> None:
    stage.submit(URL)
    reply = submit(stage, {"targets": [{"url": f"{URL}2"}]})
    assert (reply.status, reply.code, reply.json["limit"]) == (429, "caller_busy", 1)
    assert int(reply.headers["retry-after"]) > 0
    for number in range(1, int(stage.environ["JOBS_TOTAL"])):
        key = stage.new_key(f"caller-{number}")
        assert stage.request("POST", "/v1/jobs", GOOD, key=key).status == 202
    late = stage.new_key("late")
    reply = submit(stage, GOOD, key=late)
    assert (reply.status, reply.code) == (503, "jobs_busy")
    assert int(reply.headers["retry-after"]) > 0
    stage.work()
    assert stage.request("POST", "/v1/jobs", GOOD, key=late).status == 202


def test_a_full_store(stage: Stage) -> None:
    key = stage.new_key("full", limits={"retained_jobs": 1})
    stage.request("POST", "/v1/jobs", GOOD, key=key)
    stage.work()
    reply = submit(stage, {"targets": [{"url": f"{URL}2"}]}, key=key)
    assert (reply.status, reply.code) == (429, "store_full")
    assert int(reply.headers["retry-after"]) > 0


# queries and paths


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        ("", {"wait": 21}, 422, "invalid_request"), ("", {"wait": -1}, 422, "invalid_request"),
        ("", {"wait": "soon"}, 422, "invalid_request"), ("/targets", {"limit": 0}, 422, "invalid_request"),
        ("/targets", {"limit": 1_001}, 422, "invalid_request"), ("/targets", {"limit": "x"}, 422, "invalid_request"),
        ("/targets", {"status": "finished"}, 422, "invalid_request"), ("/targets", {"content": "7"}, 422, "invalid_request"),
        ("/targets", {"cursor": "nonsense"}, 400, "bad_cursor"), ("/targets", {"cursor": "é"}, 400, "bad_cursor"),
        ("/targets", {"cursor": ""}, 400, "bad_cursor"), ("/targets", {"cursor": "x" * 201}, 422, "bad_cursor"),
        ("/targets/1", {}, 404, "not_found"), ("/targets/-1", {}, 404, "not_found"),
        ("/targets/x", {}, 422, "invalid_request"), ("/targets/1/content", {}, 404, "not_found"),
        ("/targets/0/content", {}, 404, "not_found"), ("/nothing", {}, 404, "not_found"),
    ],
)  # fmt: skip
def test_wrong_queries_and_paths(stage: Stage, path: str, query: dict[str, Any], status: int, code: str) -> None:
    job_id = stage.submit(URL)
    reply = stage.get(f"/v1/jobs/{job_id}{path}", **query)
    assert (reply.status, reply.code) == (status, code)


def test_a_cursor_that_was_tampered_with_or_is_of_another_job(stage: Stage) -> None:
    jobs = []
    for number in range(2):
        jobs.append(stage.submit(*(f"{URL}{number}/{n}" for n in range(5))))
        stage.work()
    mine, other = (stage.get(f"/v1/jobs/{job_id}/targets", limit=2).json["next"] for job_id in jobs)
    path = f"/v1/jobs/{jobs[0]}/targets"
    assert stage.get(path, cursor=mine).status == 200
    for cursor in (other, mine[:-1], mine + "A", mine.swapcase(), mine + "=", mine[::-1]):
        reply = stage.get(path, cursor=cursor)
        assert (reply.status, reply.code) == (400, "bad_cursor"), cursor


# faults


def test_a_table_that_is_gone(stage: Stage) -> None:
    """A key that was seen before is still known; what it asks for is unavailable or fails inside, and says no more."""
    job_id = stage.submit(URL)
    stage.deployment.client("dynamodb").delete_table(TableName=stage.table)
    for method, path, body in (("POST", "/v1/jobs", GOOD), ("GET", f"/v1/jobs/{job_id}", None)):
        reply = stage.request(method, path, body)
        assert (reply.status, reply.code) in {(503, "unavailable"), (500, "internal")}
        assert stage.table not in reply.raw.decode()
    reply = stage.request("GET", f"/v1/jobs/{job_id}", key=f"sift_{'0' * 12}_{'0' * 64}")
    assert reply.status in {500, 503}


class Broken:
    """A service of the API of which nothing works."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


def test_a_table_that_does_not_answer(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = stage.submit(URL)
    # Port 9 of this machine: nobody listens.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with_table = bootstrap._client
    monkeypatch.setattr("sift.bootstrap._client", with_table.__wrapped__)
    for method, path, body in (("POST", "/v1/jobs", GOOD), ("GET", f"/v1/jobs/{job_id}", None)):
        reply = stage.request(method, path, body)
        assert (reply.status, reply.code) == (503, "unavailable")
        assert int(reply.headers["retry-after"]) > 0
        assert "127.0.0.1" not in reply.raw.decode()


@pytest.mark.parametrize(
    "error", [RuntimeError("secret of /a/private/path"), KeyError("secret"), RecursionError("secret")]
)
def test_a_fault_inside_shows_nothing_of_itself(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for name in ("submit.Submitter.submit", "read.Reader.wait", "keys.KeyService.authenticate"):
        with monkeypatch.context() as patch:
            module, kind, method = name.split(".")
            patch.setattr(f"sift.services.{module}.{kind}.{method}", Broken(error).__getattr__)
            for verb, path, body in (("POST", "/v1/jobs", GOOD), ("GET", "/v1/jobs/x", None)):
                reply = stage.request(verb, path, body)
                if reply.status == 404 or reply.status == 202:
                    continue  # the one that works
                assert (reply.status, reply.code) == (500, "internal")
                assert "secret" not in reply.raw.decode()
                assert reply.json["request_id"] == read_event("api-submit")["requestContext"]["requestId"]


def test_a_missing_setting_is_internal_and_not_shown(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBS_TOTAL")
    bootstrap.api.cache_clear()
    reply = stage.request("POST", "/v1/jobs", GOOD)
    assert (reply.status, reply.code) == (500, "internal")
    assert "JOBS_TOTAL" not in reply.raw.decode()


@pytest.mark.parametrize(
    "event", [{}, {"rawPath": None}, {"rawPath": "/v1/jobs", "headers": None}, {"requestContext": {}}]
)
def test_an_event_that_is_none_is_answered(stage: Stage, event: Mapping[str, Any]) -> None:
    assert stage.send(dict(event)).status in {401, 500}
