"""Submissions that are refused for what they say, and paths and queries that are: nothing is left of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sift.api import cursors
from tests.integration.api.stage import Stage, read_event
from tests.integration.api.stage import submit_refused as submit

URL = "https://example.com/"
GOOD = {"targets": [{"url": URL}]}
DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        " ",
        "{",
        "not json",
        '{"targets": [}',
        "[]",
        "null",
        "7",
        '"text"',
        "true",
        '[{"url": "https://a.example"}]',
        '{"targets": NaN}',
        '{"targets": [{"url": "https://a.example"}], "window": Infinity}',
        '{"window": -Infinity}',
        DEEP,
        '{"targets": ' + DEEP + "}",
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "{'targets': []}",
        '{"targets": [{"url": "https://a.example"}]} trailing',
        "\ufeff" + json.dumps(GOOD),
        "targets=https://a.example",
    ],
)
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
        ({}, "url"),
        ({"url": ""}, "url"),
        ({"url": "ftp://example.com"}, "url"),
        ({"url": "example.com"}, "url"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": 7}, "url"),
        ({"url": None}, "url"),
        ({"url": URL + "a" * 9_000}, "url"),
        ({"url": "https://example.com/\ud800"}, "url"),
        ({"url": URL, "id": ""}, "id"),
        ({"url": URL, "id": "\udfff"}, "id"),
        ({"url": URL, "priority": 1}, "priority"),
    ],
)
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
        {"targets": [{"url": URL, "options": {"mode": "best"}}]},
        {"targets": [{"url": URL, "options": {"proxy": "x"}}]},
        {"targets": [{"url": URL, "options": {"grep": "(x"}}]},
        {"targets": [{"url": URL, "options": {"jq": "." * 5_000}}]},
        {"targets": [{"url": URL, "options": {"headers": {"Host": "a"}}}]},
        {"targets": [{"url": URL, "options": {"headers": ["Accept: a/b"]}}]},
        {**GOOD, "options": {"headers": {"Accept": "a\nb"}}},
        {"targets": [{"url": URL, "options": 7}]},
        {**GOOD, "options": {"question": "?"}},
        {**GOOD, "options": {"recover": "yes"}},
        {**GOOD, "options": {"context": 3}},
        {**GOOD, "options": None},
    ],
)
def test_an_option_that_is_not_there_is_refused_and_not_ignored(stage: Stage, body: Any) -> None:
    reply = submit(stage, body)
    assert (reply.status, reply.code) == (422, "unsupported_option")
    assert reply.json["fields"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"window": 33},
        {"window": "many"},
        {"window": "5"},
        {"window": 5.0},
        {"window": True},
        {"window": None},
        {"fresh": "maybe"},
        {"fresh": "true"},
        {"fresh": 1},
        {"metadata": {"a": {"b": "c"}}},
        {"metadata": {str(n): "x" for n in range(17)}},
        {"metadata": {"a": "\ud83d"}},
        {"priority": 1},
        {"Targets": []},
    ],
)
def test_any_other_field(stage: Stage, wrong: dict[str, Any]) -> None:
    reply = submit(stage, json.dumps({**GOOD, **wrong}))
    assert (reply.status, reply.code) == (422, "invalid_request")
    assert next(iter(wrong)) in reply.json["detail"]


REQUEST = {"path": "/v1/chat/completions", "body": {"messages": []}}


def test_inference_is_not_configured(stage: Stage) -> None:
    key = stage.new_key("asker", scopes=("inference",))
    before = stage.stored()
    reply = stage.request("POST", "/v1/jobs", {"requests": [REQUEST]}, key=key)
    assert (reply.status, reply.code) == (403, "kind_disabled")
    assert stage.stored() == before


def test_each_kind_of_job_needs_its_scope(stage: Stage) -> None:
    assert submit(stage, {"requests": [REQUEST]}).code == "forbidden"
    key = stage.new_key("asker", scopes=("inference",))
    reply = stage.request("POST", "/v1/jobs", GOOD, key=key)
    assert (reply.status, reply.code) == (403, "forbidden")


@pytest.mark.parametrize("body", [{"requests": [REQUEST], **GOOD}, {"requests": [], **GOOD}])
def test_a_job_is_of_one_kind(stage: Stage, body: Any) -> None:
    reply = submit(stage, body)
    assert (reply.status, reply.code) == (422, "invalid_request")


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


def test_a_body_counts_as_it_was_sent_and_not_as_the_gateway_packed_it(stage: Stage) -> None:
    # 4 MB is allowed; in base64 it is 5.3 MB.
    body = json.dumps({**GOOD, "metadata": {"a": "x" * 3_900_000}})
    reply = submit(stage, body, in_base64=True)
    assert (reply.status, reply.code) == (422, "invalid_request")


def test_an_idempotency_key_that_is_too_long(stage: Stage) -> None:
    reply = submit(stage, GOOD, headers={"idempotency-key": "k" * 256})
    assert (reply.status, reply.code) == (422, "invalid_request")
    assert "Idempotency-Key" in reply.json["detail"]
    assert stage.request("POST", "/v1/jobs", GOOD, headers={"idempotency-key": "k" * 255}).status == 202


# queries and paths


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        ("", {"wait": 21}, 422, "invalid_request"),
        ("", {"wait": -1}, 422, "invalid_request"),
        ("", {"wait": "soon"}, 422, "invalid_request"),
        ("/targets", {"limit": 0}, 422, "invalid_request"),
        ("/targets", {"limit": 1_001}, 422, "invalid_request"),
        ("/targets", {"limit": "x"}, 422, "invalid_request"),
        ("/targets", {"status": "finished"}, 422, "invalid_request"),
        ("/targets", {"content": "7"}, 422, "invalid_request"),
        ("/targets", {"content": "1"}, 422, "invalid_request"),
        ("/targets", {"content": "yes"}, 422, "invalid_request"),
        ("/targets", {"limit": "+1"}, 422, "invalid_request"),
        ("/targets", {"limit": " 1"}, 422, "invalid_request"),
        ("/targets", {"limit": "01"}, 422, "invalid_request"),
        ("/targets", {"limit": "1_0"}, 422, "invalid_request"),
        ("/targets", {"limit": "1.0"}, 422, "invalid_request"),
        ("/targets", {"limit": "\uff11"}, 422, "invalid_request"),
        ("/targets", {"limit": "1,2"}, 422, "invalid_request"),
        ("/targets", {"limit": "9" * 5_000}, 422, "invalid_request"),
        ("/targets", {"limit": ""}, 422, "invalid_request"),
        ("/targets", {"cursor": "nonsense"}, 400, "bad_cursor"),
        ("/targets", {"cursor": "é"}, 400, "bad_cursor"),
        ("/targets", {"cursor": ""}, 400, "bad_cursor"),
        ("/targets", {"cursor": "x" * 201}, 400, "bad_cursor"),
        ("/targets/1", {}, 404, "not_found"),
        ("/targets/-1", {}, 404, "not_found"),
        ("/targets/x", {}, 404, "not_found"),
        ("/targets/+0", {}, 404, "not_found"),
        ("/targets/-0", {}, 404, "not_found"),
        ("/targets/00", {}, 404, "not_found"),
        ("/targets/0_0", {}, 404, "not_found"),
        ("/targets/ 0", {}, 404, "not_found"),
        ("/targets/0.0", {}, 404, "not_found"),
        ("/targets/\u0660", {}, 404, "not_found"),
        ("/targets/0\n", {}, 404, "not_found"),
        ("/targets/" + "9" * 5_000, {}, 404, "not_found"),
        ("/targets/00/content", {}, 404, "not_found"),
        ("\n", {}, 404, "not_found"),
        ("\r", {}, 404, "not_found"),
        ("%0a", {}, 404, "not_found"),
        ("/targets\n", {}, 404, "not_found"),
        ("/targets/1/content", {}, 404, "not_found"),
        ("/targets/0/content", {}, 404, "not_found"),
        ("/nothing", {}, 404, "not_found"),
    ],
)
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


@pytest.mark.parametrize(
    "place", ["", "job_", "job_0", "JOB#x", "job_01M8MZ2A0038NKRKAYDXR834MK\n", "0", "\uffff", "z" * 80]
)
def test_a_made_up_cursor_of_the_job_list_is_refused(stage: Stage, place: str) -> None:
    """Its salt is no secret: whoever knows how can make one, and it has to be a job's id all the same."""
    reply = stage.get("/v1/jobs", cursor=cursors.encode("acme/ann", place))
    assert (reply.status, reply.code) == (400, "bad_cursor")
    for long in ("x" * 201, "x" * 5_000):
        assert stage.get("/v1/jobs", cursor=long).code == "bad_cursor"


def test_a_made_up_cursor_leads_to_nobody_elses_jobs(stage: Stage) -> None:
    stage.submit(URL)
    last = cursors.encode("acme/bob", "job_" + "7" + "Z" * 25)
    other = stage.new_key("bob")
    assert stage.get("/v1/jobs", cursor=last, key=other).json == {"jobs": [], "next": None}
    assert stage.get("/v1/jobs", cursor=last).code == "bad_cursor"


@pytest.mark.parametrize("place", ["", "-1", "3", "9000", "01", "+1", "1_0", " 1", "1.0", "\u0661", "x"])
def test_a_place_that_is_no_target_of_the_job_is_refused(stage: Stage, place: str) -> None:
    job_id = stage.submit(*(f"{URL}{n}" for n in range(3)))
    meta, _ = asyncio.run(stage.store.get_job(job_id)) or pytest.fail("it was stored")
    path = f"/v1/jobs/{job_id}/targets"
    reply = stage.get(path, cursor=cursors.encode(meta.salt, place))
    assert (reply.status, reply.code) == (400, "bad_cursor")
    assert [slot["index"] for slot in stage.get(path, cursor=cursors.encode(meta.salt, "2")).json["targets"]] == [2]


@pytest.mark.parametrize(
    ("of_job", "of_target", "field"),
    [
        ({"jq": "."}, {"grep": "x"}, "grep"),
        ({}, {"jq": ".", "mode": "article"}, "jq"),
        ({"pages": "1"}, {"mode": "raw"}, "pages"),
        ({"mode": "raw"}, {"question": "how?"}, "question"),
        ({"context": 3}, {}, "context"),
        ({"grep": "x", "context": 3}, {"grep": None}, "context"),
    ],
)
def test_options_that_do_not_go_together_are_named(
    stage: Stage, of_job: dict[str, Any], of_target: dict[str, Any], field: str
) -> None:
    fitting = {"url": URL, "options": {"mode": "text", "pages": None, "jq": None, "grep": "x", "question": None}}
    reply = submit(stage, {"targets": [fitting, {"url": URL, "options": of_target}], "options": of_job})
    assert (reply.status, reply.code, reply.json["index"]) == (422, "unsupported_option", 1)
    assert reply.json["fields"][0]["field"] == f"targets.1.options.{field}"


def test_options_that_only_go_together_with_those_of_the_job(stage: Stage) -> None:
    body = {"targets": [{"url": URL, "options": {"context": 3}}], "options": {"grep": "x"}}
    assert stage.request("POST", "/v1/jobs", body).status == 202
