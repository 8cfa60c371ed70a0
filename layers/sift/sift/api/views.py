"""Domain records as the bodies that the API answers with."""

from __future__ import annotations

import json
import re
import secrets
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import Response

from sift.blob_keys import answer_key
from sift.blobs.ports import Blobs
from sift.clock import rfc3339
from sift.excerpts import MAX_CHARS, cut
from sift.jobs import Meta, State, counts
from sift.services.slots import INLINE_BYTES, Slot, content_fields, content_url, describe, has_content, read_content
from sift.targets import Content

if TYPE_CHECKING:
    from sift.webhooks import Delivery

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


async def with_content(
    job_id: str, slot: Slot, blobs: Blobs, offset: int | None = None, max_chars: int | None = None
) -> dict[str, Any]:
    """The body of a `Target` with its content, or with `content_url` where that is too large for JSON.

    With `offset` or `max_chars`: with that part of it, and `next_offset`, the place to go on, or null at its end.
    """
    body = describe(slot)
    if slot.outcome is None or not has_content(slot.outcome):
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
    url = content_url(job_id, slot)
    if slot.outcome.size > INLINE_BYTES:
        return body | {"content_url": url}
    data = await read_content(slot, blobs)
    full = body | content_fields(data, body["media_type"] or "")
    return full if weight(full) <= PAGE_BYTES else body | {"content_url": url}


async def fetched(content: Content, blobs: Blobs) -> dict[str, Any]:
    """The body of a `Fetched`. Content that is too large for JSON is put into the bucket, for as long as its link."""
    body: dict[str, Any] = {"meta": {**content.meta, "attempts": 1, "content_type": content.media_type}}
    if len(content.body) <= INLINE_BYTES:
        full = content_fields(content.body, content.media_type) | body
        if weight(full) <= PAGE_BYTES:
            return full
    key = answer_key(secrets.token_hex(16))
    await blobs.put(key, content.body, content.media_type)
    return {"content_url": await blobs.link(key, LINK_SECONDS)} | body


def json_response(
    status: int, body: dict[str, Any], headers: dict[str, str | list[str]] | None = None
) -> Response[Any]:
    """A body as the answer that carries it."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Response(status, content_type="application/json", body=text, headers=headers)


def weight(body: dict[str, Any]) -> int:
    """What a body weighs in a Lambda answer, in bytes: as JSON, inside a JSON string."""
    return len(json.dumps(json.dumps(body, ensure_ascii=False), ensure_ascii=False).encode())


def _moment(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)
