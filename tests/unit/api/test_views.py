"""Bodies: text and bytes, what is too large for JSON, and what an answer weighs."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift.api import views
from sift.api.answers import Target
from sift.blobs.memory import MemoryBlobs
from sift.errors import NotFound
from sift.services import slots
from sift.services.slots import Slot
from sift.store.ports import Outcome

JOB = "job_01M8MZ2A0038NKRKAYDXR834MK"


def slot(content: bytes, media_type: str | None, *, blob: str | None = None) -> Slot:
    document = {
        "media_type": media_type,
        "chars": None,
        "meta": {"status": 200},
        "finished_at": "2026-11-30T00:00:00.000Z",
    }
    inline = None if blob else content
    outcome = Outcome(7, 1, "done", len(content), document, content=inline, blob=blob)
    return Slot(index=7, status="done", url="https://example.com/", label=None, attempts=1, outcome=outcome)


def body(content: bytes, media_type: str | None, blobs: MemoryBlobs | None = None, **kind: Any) -> dict[str, Any]:
    found = asyncio.run(views.with_content(JOB, slot(content, media_type, **kind), blobs or MemoryBlobs()))
    Target.model_validate(found)
    return found


@pytest.mark.parametrize(
    "media_type",
    ["text/plain; charset=utf-8", "text/markdown", "TEXT/HTML", "application/json", "application/ld+json",
     "application/xml", "image/svg+xml", "application/json; charset=utf-8"],
)  # fmt: skip
def test_text_is_put_in_as_text(media_type: str) -> None:
    found = body("“Ünïcode” 日本".encode(), media_type)
    assert found["content"] == "“Ünïcode” 日本"
    assert "encoding" not in found
    assert "content_url" not in found


@pytest.mark.parametrize(
    ("content", "media_type"),
    [(b"%PDF-1.7", "application/pdf"), (b"abc", None), (b"abc", "application/octet-stream"), (b"\xff\xfe", "text/html"),
     (b"caf\xe9", "text/plain; charset=iso-8859-1"),
     ("plain".encode("utf-16-le"), "text/plain; charset=utf-16le"), ("plain".encode("utf-16-be"), "text/plain"),
     ("plain".encode("utf-16"), "text/html"), ("{}".encode("utf-32-le"), "application/json"),
     ("<a/>".encode("utf-32-be"), "application/xml"), ("{}".encode("utf-32"), "application/json"),
     (b"a\0b", "text/plain; charset=utf-8"), (b"\0", "text/plain")],
)  # fmt: skip
def test_what_is_not_utf8_text_is_base64(content: bytes, media_type: str | None) -> None:
    found = body(content, media_type)
    assert (found["encoding"], base64.b64decode(found["content"])) == ("base64", content)


def test_content_above_four_megabytes_is_a_link() -> None:
    large = b"x" * (slots.INLINE_BYTES + 1)
    found = body(large, "text/plain")
    assert found["content_url"] == f"/v1/jobs/{JOB}/targets/7/content"
    assert "content" not in found
    assert body(large[:-1], "text/plain")["content"] == "x" * slots.INLINE_BYTES


@pytest.mark.parametrize("text", ['"' * 2_000_000, "\\" * 2_000_000, "\n" * 2_600_000, "\x01" * 1_000_000])
def test_content_that_grows_in_json_is_a_link_before_the_answer_is_too_large(text: str) -> None:
    found = body(text.encode(), "text/plain")
    assert "content_url" in found
    assert views.weight(found) < views.PAGE_BYTES


@given(st.text(max_size=2_000))
def test_weight_is_what_lambda_counts(text: str) -> None:
    answer = {"body": json.dumps({"content": text}, ensure_ascii=False, separators=(",", ":"))}
    try:
        sent = len(json.dumps(answer, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        return  # a lone surrogate: no content is decoded to one
    assert sent - len('{"body": }') <= views.weight({"content": text}) <= sent + 10


def test_blobs_are_read_and_missing_ones_are_not_found() -> None:
    blobs = MemoryBlobs()
    asyncio.run(blobs.put("key", b"in the bucket", "text/plain"))
    assert body(b"in the bucket", "text/plain", blobs, blob="key")["content"] == "in the bucket"
    with pytest.raises(NotFound):
        body(b"gone", "text/plain", blobs, blob="other")


def test_a_target_that_is_not_done_has_no_content() -> None:
    pending = Slot(index=0, status="pending", url="https://example.com/", label="mine", attempts=0)
    found = asyncio.run(views.with_content(JOB, pending, MemoryBlobs()))
    assert not {"content", "encoding", "content_url"} & set(found)
    Target.model_validate(found)
    with pytest.raises(NotFound):
        asyncio.run(slots.read_content(pending, MemoryBlobs()))
