"""How a finished target is stored."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sift.blob_keys import content_key
from sift.blobs.ports import Blobs
from sift.clock import rfc3339
from sift.errors import TargetFailed
from sift.messages import Message, TargetMessage
from sift.request_headers import without_credentials
from sift.store.ports import Outcome
from sift.targets import Content

if TYPE_CHECKING:
    from sift.model_requests import UpstreamResponse

#: Content that compresses to this (bytes) is kept in the table, larger content in the bucket.
INLINE_BYTES = 32 * 1024
#: Content above this (bytes) goes to the bucket however well it compresses: whoever reads outcomes unpacks a hundred.
INLINE_WHOLE_BYTES = 256 * 1024


async def keep(
    blobs: Blobs, message: TargetMessage, lease: int, content: Content, attempts: int, now_ms: int
) -> Outcome:
    """The outcome of a target that is done; its content is in the bucket by then when it is large."""
    body = content.body
    blob = None
    if len(body) > INLINE_WHOLE_BYTES or len(zlib.compress(body, 6)) > INLINE_BYTES:
        blob = content_key(message.job_id, message.index, lease)
        await blobs.put(blob, body, content.media_type)
    document = _document(message, attempts, now_ms)
    document |= {
        "options": without_credentials(message.options),  # nobody runs it again
        "media_type": content.media_type,
        "chars": content.meta.get("chars"),
        "meta": {**content.meta, "attempts": attempts},
    }
    return Outcome(message.index, lease, "done", len(body), document, content=None if blob else body, blob=blob)


async def keep_response(
    blobs: Blobs, message: Message, lease: int, response: UpstreamResponse, outcome_meta: dict[str, Any], now_ms: int
) -> Outcome:
    """The outcome of a request that was answered, whatever the status; a large answer is in the bucket by then.

    An error's body is content as well: it is what says why.
    """
    media_type = response.media_type if _is_header(response.media_type) else "application/octet-stream"
    meta = {
        "status": response.status,
        "content_type": media_type,
        "gateway_request_id": response.request_id,
        "usage": None if response.usage is None else dict(response.usage),
        **outcome_meta,
        "finished_at": rfc3339(now_ms),
    }
    document = _document(message, outcome_meta["attempts"], now_ms) | {"media_type": media_type, "meta": meta}
    content, blob = None, None
    if response.size <= INLINE_WHOLE_BYTES:
        content = await asyncio.to_thread(response.file.read)
    if content is None or len(zlib.compress(content, 6)) > INLINE_BYTES:
        blob = content_key(message.job_id, message.index, lease)
        response.file.seek(0)
        await blobs.put_file(blob, response.file, media_type)
    done = Outcome(message.index, lease, "done", response.size, document, None if blob else content, blob)
    if response.status < 400:
        return done
    document["error"] = {
        "code": "http_error",
        "detail": f"The gateway answered {response.status}.",
        "hint": "Read the target's content: it is what the gateway said.",
        "status": response.status,
    }
    return replace(done, status="failed")


def keep_failure(message: Message, lease: int, error: TargetFailed, attempts: int, now_ms: int) -> Outcome:
    """The outcome of a target that has failed for good."""
    document = _document(message, attempts, now_ms)
    document["error"] = {
        "code": error.code,
        "detail": error.detail,
        "hint": error.hint,
        "status": error.status,
    }
    document["meta"] = {**error.meta, "attempts": attempts} if error.meta else None
    return Outcome(message.index, lease, "failed", 0, document)


def _is_header(text: str) -> bool:
    """Whether it can be sent on as a Content-Type."""
    return 0 < len(text) < 200 and text.isascii() and text.isprintable()


def _document(message: Message, attempts: int, now_ms: int) -> dict[str, Any]:
    if isinstance(message, TargetMessage):
        work: dict[str, Any] = {"url": message.url, "options": dict(message.options)}
    else:
        work = {"path": message.path, "model": message.model}
    return work | {
        "id": message.label,
        "media_type": None,
        "chars": None,
        "meta": None,
        "error": None,
        "attempts": attempts,
        "finished_at": rfc3339(now_ms),
    }
