"""Problem documents: one status for each error, and nothing in them that should stay inside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sift import errors
from sift.api import problems


def read(error: errors.SiftError) -> tuple[int, dict[str, Any], dict[str, Any]]:
    answer = problems.answer(error, "request-7")
    assert answer.content_type == "application/problem+json"
    assert answer.body is not None
    headers = {name: value for name, value in answer.headers.items() if name != "Content-Type"}
    return answer.status_code, json.loads(answer.body), headers


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.Malformed, 400), (errors.Forbidden, 403), (errors.NotFound, 404),
        (errors.Conflict, 409), (errors.TooLarge, 413), (errors.Invalid, 422), (errors.CallerBusy, 429),
        (errors.ServiceBusy, 503),
    ],
)  # fmt: skip
def test_each_refusal_has_its_status(kind: type[errors.RequestRefused], status: int) -> None:
    found, body, _ = read(kind("some_code", "Some detail.", "Some hint.", extra={"limit": 3}))
    assert found == status == body["status"]
    assert body == {
        "type": "about:blank", "title": body["title"], "status": status, "detail": "Some detail.",
        "code": "some_code", "hint": "Some hint.", "request_id": "request-7", "limit": 3,
    }  # fmt: skip
    assert body["title"]


def test_who_is_not_known_is_told_how_to_be() -> None:
    found, body, headers = read(errors.Unauthenticated())
    assert (found, body["code"], headers["WWW-Authenticate"]) == (401, "unauthenticated", "Bearer")
    assert "Authorization: Bearer" in body["hint"]


def test_every_refusal_has_a_status() -> None:
    for kind in errors.RequestRefused.__subclasses__():
        assert kind in problems.STATUS


def test_headers_that_tell_a_client_what_to_do() -> None:
    assert read(errors.CallerBusy("caller_busy", "x", retry_after=15))[2]["Retry-After"] == "15"
    assert read(errors.Conflict("invalid_state", "x"))[2] == {"x-should-retry": "false"}
    assert read(errors.Unauthenticated("unauthenticated", "x"))[2] == {"WWW-Authenticate": "Bearer"}
    assert read(errors.NotFound("not_found", "x"))[2] == {}


def test_what_is_unavailable_is_not_told() -> None:
    status, body, headers = read(errors.Unavailable("put_item on the table jobs-1: ThrottlingException"))
    assert (status, body["code"]) == (503, "unavailable")
    assert int(headers["Retry-After"]) > 0
    assert "jobs-1" not in json.dumps(body)


@pytest.mark.parametrize(
    "error", [errors.DataUnreadable("The item JOB#7 has version 2."), errors.SiftError("odd", "a secret", "a hint")]
)
def test_what_nobody_foresaw_is_internal_and_says_no_more(error: errors.SiftError) -> None:
    status, body, _ = read(error)
    assert (status, body["code"], body["request_id"]) == (500, "internal", "request-7")
    assert error.detail not in json.dumps(body)


@pytest.mark.parametrize(
    ("loc", "kind", "code"),
    [
        (("body",), "missing", "malformed_json"), (("body", 17), "json_invalid", "malformed_json"),
        (("body", "targets"), "missing", "no_targets"), (("body", "targets"), "too_short", "no_targets"),
        (("body", "targets", 3), "model_type", "invalid_target"),
        (("body", "targets", 3, "url"), "bad_url", "invalid_target"),
        (("body", "targets", 3, "options", "grep"), "extra_forbidden", "unsupported_option"),
        (("body", "options", "mode"), "literal_error", "unsupported_option"),
        (("body", "webhook", "url"), "bad_url", "invalid_webhook"),
        (("body", "requests"), "list_type", "no_targets"), (("body",), "no_targets", "no_targets"),
        (("body",), "two_kinds", "invalid_request"), (("body",), "no_options", "unsupported_option"),
        (("body", "requests", 3, "body"), "dict_type", "invalid_target"),
        (("body", "window"), "less_than_equal", "invalid_request"),
        (("body", "surprise"), "extra_forbidden", "invalid_request"),
        (("query", "limit"), "int_parsing", "invalid_request"),
        (("query", "surprise"), "extra_forbidden", "invalid_request"), (("path", "index"), "bad_number", "not_found"),
    ],
)  # fmt: skip
def test_each_wrong_field_has_its_code(loc: tuple[Any, ...], kind: str, code: str) -> None:
    refused = problems.refuse_fields([{"loc": loc, "type": kind, "msg": "is wrong"}])
    assert refused.code == code
    assert refused.hint
    if code == "invalid_target":
        assert refused.extra["index"] == 3
        assert f"{loc[1]}.3" in refused.detail


def test_many_wrong_fields_are_not_all_listed() -> None:
    found = [{"loc": ("body", "targets", n, "url"), "type": "bad_url", "msg": "is wrong"} for n in range(9_000)]
    refused = problems.refuse_fields(found)
    assert refused.extra["index"] == 0
    assert len(refused.extra["fields"]) == problems.MOST_FIELDS
