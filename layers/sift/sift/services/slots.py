"""The targets of a job as they stand, and as JSON: as the API answers with them, and as lines of the results file."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sift.blobs.ports import Blobs
from sift.errors import NotFound
from sift.excerpts import is_of_another, is_text
from sift.store.ports import Outcome

#: Content above this (bytes) is never put inside JSON.
INLINE_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Slot:
    """One target as it stands: its outcome, or a status derived from the job's state. `url` and `options` are of a
    fetch job, `path` and `model` of an inference job."""

    index: int
    status: str  # in the words of the API
    url: str | None
    label: str | None
    attempts: int
    options: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    error: Mapping[str, Any] | None = None
    path: str | None = None
    model: str | None = None


def describe(slot: Slot) -> dict[str, Any]:
    """The body of a `Target`, without its content."""
    outcome = slot.outcome
    document = outcome.document if outcome else {}
    return {
        "index": slot.index,
        "id": slot.label,
        **({"path": slot.path, "model": slot.model} if slot.url is None else {"url": slot.url}),
        "status": slot.status,
        "attempts": slot.attempts,
        "media_type": document.get("media_type"),
        "bytes": outcome.size if outcome and has_content(outcome) else None,
        "chars": document.get("chars"),
        "error": slot.error,
        "meta": document.get("meta"),
        "finished_at": document.get("finished_at"),
    }


async def read_content(slot: Slot, blobs: Blobs) -> bytes:
    """The bytes of a finished target, wherever they are. Raises NotFound when there are none."""
    outcome = slot.outcome
    if outcome is not None and outcome.content is not None:
        return outcome.content
    data = await blobs.get(outcome.blob) if outcome is not None and outcome.blob else None
    if data is None:
        raise NotFound("not_found", "The target has no content.", "Read the target: it may have failed.")
    return data


async def to_line(job_id: str, slot: Slot, blobs: Blobs) -> bytes:
    """A slot as a line of the results file: as a page of targets has it with contents, but whole up to INLINE_BYTES."""
    body = describe(slot)
    if slot.outcome is not None and has_content(slot.outcome):
        held = None
        if slot.outcome.size <= INLINE_BYTES:
            with contextlib.suppress(NotFound):  # the bucket has lost it; the others must not wait for it
                held = content_fields(await read_content(slot, blobs), body["media_type"] or "")
        body |= held or {"content_url": content_url(job_id, slot)}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def content_url(job_id: str, slot: Slot) -> str:
    return f"/v1/jobs/{job_id}/targets/{slot.index}/content"


def has_content(outcome: Outcome) -> bool:
    """A target that is done has one, if an empty one; so has a request that was answered with an error."""
    return outcome.status == "done" or outcome.size > 0


def content_fields(data: bytes, media_type: str) -> dict[str, Any]:
    """Content as the fields of a body that hold it."""
    text = _text(data, media_type)
    if text is None:
        return {"content": base64.b64encode(data).decode(), "encoding": "base64"}
    return {"content": text}


def _text(data: bytes, media_type: str) -> str | None:
    """The content as text where it is UTF-8 text.

    `raw` keeps what the server sent, in whatever encoding.
    """
    if not is_text(media_type):
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if is_of_another(text) else text
