"""Page cursors: where to go on, sealed so that one which was altered is refused."""

from __future__ import annotations

import base64
import hashlib
import hmac

from sift.errors import Malformed


def encode(salt: str, index: int) -> str:
    """A cursor for the slot to go on from; `salt` is the job's own."""
    text = str(index).encode()
    return base64.urlsafe_b64encode(_seal(salt, text) + text).decode().rstrip("=")


def decode(salt: str, cursor: str) -> int:
    """The slot to go on from. Raises Malformed for anything that `encode` did not make for this job."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise _refused() from None
    seal, text = data[:8], data[8:]
    if not hmac.compare_digest(seal, _seal(salt, text)) or encode(salt, int(text)) != cursor:
        raise _refused()
    return int(text)


def _seal(salt: str, text: bytes) -> bytes:
    return hmac.digest(salt.encode(), text, hashlib.sha256)[:8]


def _refused() -> Malformed:
    return Malformed(
        "bad_cursor", "The cursor is not one of this job's.", "Start again without it, and pass `next` as it came."
    )
