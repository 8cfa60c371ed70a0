"""Inference jobs in the bodies of the API: what is read, and how slots and errors are shown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from sift.api import problems, views
from sift.api.answers import Target
from sift.api.models import JobRequest
from sift.api.submissions import read_submission
from sift.blobs.memory import MemoryBlobs
from sift.errors import NotFound, TooLarge
from sift.services import slots
from sift.services.slots import Slot
from sift.specs import RequestSpec
from sift.store.ports import Outcome

GOOD = {"path": "/v1/chat/completions", "body": {"messages": []}}
JOB = "job_01K9A4Q2RS8T7V6W5X4Y3Z2A1B"


def code_of(body: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(ValidationError) as caught:
        JobRequest.model_validate(body)
    found = [{"loc": ("body", *e["loc"]), "type": e["type"], "msg": e["msg"]} for e in caught.value.errors()]
    refused = problems.refuse_fields(found)
    return refused.code, refused.detail


def allow(url: str) -> None:
    """Every webhook may be posted to."""


def test_what_is_read() -> None:
    request = JobRequest.model_validate({"requests": [{**GOOD, "model": "a", "id": "mine"}, GOOD], "window": 3})
    read = read_submission(request, None, allow)
    assert read.kind == "inference"
    assert read.window == 3
    assert list(read.targets) == [
        RequestSpec("/v1/chat/completions", "a", '{"messages":[],"model":"a"}', "mine"),
        RequestSpec("/v1/chat/completions", None, '{"messages":[]}'),
    ]
    of_urls = JobRequest.model_validate({"targets": [{"url": "https://a.example"}]})
    assert read_submission(of_urls, None, allow).kind == "fetch"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "no_targets"),
        ({"requests": []}, "no_targets"),
        ({"requests": None}, "no_targets"),
        ({"requests": {}}, "no_targets"),
        ({"requests": [GOOD], "targets": [{"url": "https://a.example"}]}, "invalid_request"),
        ({"requests": [], "targets": [{"url": "https://a.example"}]}, "invalid_request"),
        ({"requests": [GOOD], "options": {}}, "unsupported_option"),
        ({"requests": ["/v1/x"]}, "invalid_target"),
        ({"requests": [{"path": "/v1/x"}]}, "invalid_target"),
        ({"requests": [{"body": {}}]}, "invalid_target"),
        ({"requests": [{**GOOD, "body": "{}"}]}, "invalid_target"),
        ({"requests": [{**GOOD, "body": []}]}, "invalid_target"),
        ({"requests": [{**GOOD, "path": 7}]}, "invalid_target"),
        ({"requests": [{**GOOD, "method": "GET"}]}, "invalid_target"),
        ({"requests": [{**GOOD, "headers": {}}]}, "invalid_target"),
        ({"requests": [{**GOOD, "id": ""}]}, "invalid_target"),
        ({"requests": [GOOD], "window": 0}, "invalid_request"),
    ],
)
def test_what_is_refused(body: dict[str, Any], code: str) -> None:
    assert code_of(body)[0] == code


def test_the_index_of_a_body_that_is_too_large_is_named() -> None:
    request = JobRequest.model_validate({"requests": [GOOD, {**GOOD, "body": {"x": "x" * 1_048_577}}]})
    with pytest.raises(TooLarge) as caught:
        read_submission(request, None, allow)
    answer = problems.answer(caught.value, "r")
    assert answer.status_code == 413
    assert '"index": 1' in str(answer.body)


def slot(word: Any, body: bytes | None, **error: Any) -> Slot:
    document = {
        "path": "/v1/x", "model": "a", "id": None, "media_type": "application/json", "chars": None,
        "meta": {"status": 500}, "error": error or None, "attempts": 1, "finished_at": "2026-11-30T00:00:00.000Z",
    }  # fmt: skip
    outcome = Outcome(0, 1, word, len(body or b""), document, body)
    return Slot(0, word, None, None, 1, outcome=outcome, error=error or None, path="/v1/x", model="a")


def test_a_slot_shows_its_request_and_no_url() -> None:
    body = slots.describe(slot("done", b"{}"))
    Target.model_validate(body)
    assert (body["path"], body["model"], body["bytes"]) == ("/v1/x", "a", 2)
    assert "url" not in body
    pending = slots.describe(Slot(1, "pending", None, "mine", 0, path="/v1/x"))
    assert (pending["path"], pending["model"], pending["id"]) == ("/v1/x", None, "mine")
    assert "path" not in slots.describe(Slot(1, "pending", "https://a.example", None, 0))


def test_an_error_of_the_gateway_has_a_body_to_read() -> None:
    async def story() -> None:
        failed = slot("failed", b'{"error":"no"}', code="http_error", detail="It answered 500.", hint="", status=500)
        body = await views.with_content(JOB, failed, MemoryBlobs())
        assert (body["content"], body["bytes"]) == ('{"error":"no"}', 14)
        assert await slots.read_content(failed, MemoryBlobs()) == b'{"error":"no"}'
        without = slot("failed", None, code="timeout", detail="", hint="", status=None)
        assert (await views.with_content(JOB, without, MemoryBlobs())).get("content") is None
        with pytest.raises(NotFound):
            await slots.read_content(without, MemoryBlobs())

    asyncio.run(story())
