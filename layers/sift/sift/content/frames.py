"""The bytes on the pipes between the handler, the fork server and a document's child."""

from __future__ import annotations

import json
import struct
from typing import Any

# Handler -> fork server: verb, document number, wall limit in milliseconds. RUN carries the child's socket.
ORDER = struct.Struct("!III")
RUN, KILL = 1, 2

# Fork server -> handler: document number, what happened, a value; then what the child used: the most memory in KiB
# (with what it shares), and processor time in milliseconds.
REPORT = struct.Struct("!IIIII")
STARTED, ENDED, OVERDUE, REFUSED = 1, 2, 3, 4
"""STARTED: the value is the child's process id. ENDED, OVERDUE (the wall limit ended it): the value is the wait status
as os.waitpid gives it. REFUSED: the system has no process to give."""
OUT_OF_MEMORY = 2  # a child's exit code

# Handler <-> child, both ways: lengths of a JSON head and of the body, the head, the body.
_HEAD = struct.Struct("!IQ")
MAX_HEAD_BYTES = 1024 * 1024


def pack(head: dict[str, Any], size: int) -> bytes:
    """What goes before a body of `size` bytes: both lengths and a JSON object."""
    text = json.dumps(head, ensure_ascii=False).encode("utf-8", "replace")
    return _HEAD.pack(len(text), size) + text


def unpack(message: bytes | bytearray) -> tuple[dict[str, Any], bytes]:
    """Undo `pack`, with the whole body after it; raises ValueError for anything else (a document may have taken the
    sender over)."""
    if len(message) < _HEAD.size:
        raise ValueError("no head")
    length, size = _HEAD.unpack_from(message)
    if length > MAX_HEAD_BYTES or _HEAD.size + length + size != len(message):
        raise ValueError("head out of bounds")
    try:
        head = json.loads(message[_HEAD.size : _HEAD.size + length])
    except RecursionError as error:
        raise ValueError("head too deep") from error
    if not isinstance(head, dict):
        raise ValueError("head is no object")
    with memoryview(message) as view:
        return head, bytes(view[_HEAD.size + length :])
