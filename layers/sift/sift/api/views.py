"""Domain records as the bodies that the API answers with."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import secrets
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import Response

from sift.api.excerpts import MAX_CHARS, cut, is_of_another, is_text
from sift.blobs.ports import Blobs, answer_key
from sift.clock import rfc3339
from sift.errors import NotFound
from sift.jobs import Meta, State, counts
from sift.services.read import Slot
from sift.store.ports import Outcome
from sift.targets import Content

if TYPE_CHECKING:
    from sift.webhooks import Delivery

#: Content above this (bytes) is never put inside JSON.
INLINE_BYTES = 4_000_000
#: A presigned link is short-lived: it is followed at once.
LINK_SECONDS = 300
#: What one answer may weigh (bytes). A Lambda answer is limited to 6 MB, and holds its body as a JSON string.
PAGE_BYTES = 5_000_000

_JOB_ERRORS = {"deadline": "The deadline passed before every target had run."}


def job(
    meta: Meta, state: State, now_ms: int, *, delivery: Delivery | None = None, reused: bool = False
) -> dict[str, Any]:
    """The body of a `Job`."""
    error = None
    if state.error is not None:
        error = {"code": state.error, "detail": _JOB_ERRORS.get(state.error, state.error)}
    return {
        "id": meta.job_id,
        "kind": meta.kind,
        "tenant": meta.identity["tenant"],
        "actor": meta.identity["actor"],
        "status": state.status,
        "counts": counts(state, now_ms),
        "bytes": state.bytes,
        "window": state.window,
        "created_at": rfc3339(meta.created_at),
        "started_at": _moment(state.started_at),
        "ended_at": _moment(state.ended_at),
        "deadline_at": rfc3339(meta.deadline_at),
        "expires_at": None if state.expires_at is None else rfc3339(state.expires_at * 1000),
        "error": error,
        "metadata": dict(meta.metadata),
        "retry_of": meta.retry_of,
        "webhook": _webhook(meta, delivery),
        "reused": reused,
    }


def _webhook(meta: Meta, delivery: Delivery | None) -> dict[str, Any] | None:
    """The body of a `Webhook`, without the headers, which may be credentials, and the query, which may hold some."""
    if meta.webhook is None:
        return None
    return {
        "url": re.split(r"[?#]", meta.webhook["url"])[0],
        "events": list(meta.webhook["events"]),
        "state": "pending" if delivery is None else delivery.state,
        "last_status": delivery and delivery.status,
        "last_error": delivery and delivery.error,
    }


def target(slot: Slot) -> dict[str, Any]:
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
        "bytes": outcome.size if outcome and _has_content(outcome) else None,
        "chars": document.get("chars"),
        "error": slot.error,
        "meta": document.get("meta"),
        "finished_at": document.get("finished_at"),
    }


async def with_content(
    job_id: str, slot: Slot, blobs: Blobs, offset: int | None = None, max_chars: int | None = None
) -> dict[str, Any]:
    """The body of a `Target` with its content, or with `content_url` where that is too large for JSON.

    With `offset` or `max_chars`: with that part of it, and `next_offset`, the place to go on, or null at its end.
    """
    body = target(slot)
    if slot.outcome is None or not _has_content(slot.outcome):
        return body
    if offset is not None or max_chars is not None:
        data = await read_content(slot, blobs)
        most = MAX_CHARS // 2 if max_chars is None else max_chars  # in JSON a character may be twelve bytes
        while True:
            part = cut(data, body["media_type"] or "", offset, most)
            full = body | {"chars": part.chars, "content": part.text, "next_offset": part.next_offset}
            if weight(full) <= PAGE_BYTES or most == 1:
                return full
            most //= 2
    url = _content_url(job_id, slot)
    if slot.outcome.size > INLINE_BYTES:
        return body | {"content_url": url}
    data = await read_content(slot, blobs)
    full = body | _held(data, body["media_type"] or "")
    return full if weight(full) <= PAGE_BYTES else body | {"content_url": url}


async def line(job_id: str, slot: Slot, blobs: Blobs) -> bytes:
    """A slot as a line of the results file: as a page of targets has it with contents, but whole up to INLINE_BYTES."""
    body = target(slot)
    if slot.outcome is not None and _has_content(slot.outcome):
        held = None
        if slot.outcome.size <= INLINE_BYTES:
            with contextlib.suppress(NotFound):  # the bucket has lost it; the others must not wait for it
                held = _held(await read_content(slot, blobs), body["media_type"] or "")
        body |= held or {"content_url": _content_url(job_id, slot)}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _content_url(job_id: str, slot: Slot) -> str:
    return f"/v1/jobs/{job_id}/targets/{slot.index}/content"


async def fetched(content: Content, blobs: Blobs) -> dict[str, Any]:
    """The body of a `Fetched`. Content that is too large for JSON is put into the bucket, for as long as its link."""
    body: dict[str, Any] = {"meta": {**content.meta, "attempts": 1, "content_type": content.media_type}}
    if len(content.body) <= INLINE_BYTES:
        full = _held(content.body, content.media_type) | body
        if weight(full) <= PAGE_BYTES:
            return full
    key = answer_key(secrets.token_hex(16))
    await blobs.put(key, content.body, content.media_type)
    return {"content_url": await blobs.link(key, LINK_SECONDS)} | body


async def read_content(slot: Slot, blobs: Blobs) -> bytes:
    """The bytes of a finished target, wherever they are. Raises NotFound when there are none."""
    outcome = slot.outcome
    if outcome is not None and outcome.content is not None:
        return outcome.content
    data = await blobs.get(outcome.blob) if outcome is not None and outcome.blob else None
    if data is None:
        raise NotFound("not_found", "The target has no content.", "Read the target: it may have failed.")
    return data


def json_response(
    status: int, body: dict[str, Any], headers: dict[str, str | list[str]] | None = None
) -> Response[Any]:
    """A body as the answer that carries it."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Response(status, content_type="application/json", body=text, headers=headers)


def weight(body: dict[str, Any]) -> int:
    """What a body weighs in a Lambda answer, in bytes: as JSON, inside a JSON string."""
    return len(json.dumps(json.dumps(body, ensure_ascii=False), ensure_ascii=False).encode())


def _has_content(outcome: Outcome) -> bool:
    """A target that is done has one, if an empty one; so has a request that was answered with an error."""
    return outcome.status == "done" or outcome.size > 0


def _held(data: bytes, media_type: str) -> dict[str, Any]:
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


def _moment(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)
