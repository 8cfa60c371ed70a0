"""How a finished target is stored."""

from __future__ import annotations

import zlib
from typing import Any

from sift.blobs.ports import Blobs, content_key
from sift.clock import rfc3339
from sift.errors import TargetFailed
from sift.messages import TargetMessage
from sift.request_headers import without_credentials
from sift.store.ports import Outcome
from sift.targets import Content

#: Content that compresses to this (bytes) is kept in the table, larger content in the bucket.
INLINE_BYTES = 32 * 1024
#: Content above this (bytes) is read by a link to the bucket, so it has to be there however well it compresses:
#: a Lambda answer is limited to 6 MB, of which base64 takes a third.
LINK_BYTES = 4_000_000


async def keep(
    blobs: Blobs, message: TargetMessage, lease: int, content: Content, attempts: int, now_ms: int
) -> Outcome:
    """The outcome of a target that is done; its content is in the bucket by then when it is large."""
    body = content.body
    blob = None
    if len(body) > LINK_BYTES or len(zlib.compress(body, 6)) > INLINE_BYTES:
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


def keep_failure(message: TargetMessage, lease: int, error: TargetFailed, attempts: int, now_ms: int) -> Outcome:
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


def _document(message: TargetMessage, attempts: int, now_ms: int) -> dict[str, Any]:
    return {
        "url": message.url,
        "id": message.label,
        "options": dict(message.options),
        "media_type": None,
        "chars": None,
        "meta": None,
        "error": None,
        "attempts": attempts,
        "finished_at": rfc3339(now_ms),
    }
