"""Page cursors: where to go on, sealed so that one which was altered is refused."""

from __future__ import annotations

import base64
import hashlib
import hmac

from sift.errors import Malformed


def encode(salt: str, place: str) -> str:
    """A cursor for the place to go on from; `salt` is that of the job, or the name of the list."""
    text = place.encode()
    return base64.urlsafe_b64encode(_seal(salt, text) + text).decode().rstrip("=")


def decode(salt: str, cursor: str) -> str:
    """The place to go on from. Raises Malformed for anything that `encode` did not make with this salt."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        seal, place = data[:8], data[8:].decode()
    except ValueError:
        raise _refused() from None
    if not hmac.compare_digest(seal, _seal(salt, place.encode())) or encode(salt, place) != cursor:
        raise _refused()
    return place


def _seal(salt: str, text: bytes) -> bytes:
    return hmac.digest(salt.encode(), text, hashlib.sha256)[:8]


def _refused() -> Malformed:
    return Malformed(
        "bad_cursor", "The cursor is not one of this list's.", "Start again without it, and pass `next` as it came."
    )
