"""Page cursors: where a list goes on, with a checksum so that one which was altered is refused.

For the targets of a job the salt is random and never shown, so nobody can make up a cursor. For the list of jobs it is
the caller's own name: there the checksum keeps out mistakes, not malice. So a place is never trusted for having come
in a cursor: it is checked for what it is, and names nothing outside the caller's own list.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from sift import ids
from sift.api.queries import read_index
from sift.errors import Malformed

#: No cursor is that long; nothing longer is looked at.
CURSOR_CHARS = 200


def encode(salt: str, place: str) -> str:
    """A cursor for the place to go on from; `salt` is that of the job, or the name of the list."""
    text = place.encode()
    return base64.urlsafe_b64encode(_checksum(salt, text) + text).decode().rstrip("=")


def decode(salt: str, cursor: str) -> str:
    """The place to go on from. Raises Malformed for anything that `encode` does not make with this salt."""
    if len(cursor) > CURSOR_CHARS:
        raise _refused()
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        checksum, place = data[:8], data[8:].decode()
    except ValueError:
        raise _refused() from None
    if not hmac.compare_digest(checksum, _checksum(salt, place.encode())) or encode(salt, place) != cursor:
        raise _refused()
    return place


def decode_job(salt: str, cursor: str) -> str:
    """As `decode`, for a list of jobs: the id of one."""
    place = decode(salt, cursor)
    if not ids.is_job_id(place):
        raise _refused()
    return place


def decode_index(salt: str, cursor: str, total: int) -> int:
    """As `decode`, for the targets of a job that has `total` of them: the index of one."""
    index = read_index(decode(salt, cursor))
    if index is None or index >= total:
        raise _refused()
    return index


def _checksum(salt: str, text: bytes) -> bytes:
    return hmac.digest(salt.encode(), text, hashlib.sha256)[:8]


def _refused() -> Malformed:
    return Malformed(
        "bad_cursor", "The cursor is not one of this list's.", "Start again without it, and pass `next` as it came."
    )
