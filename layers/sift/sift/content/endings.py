"""How a child ended, as the answer it gave or as a typed error."""

from __future__ import annotations

import os
import signal
from typing import Any, NamedTuple

from sift.content import frames
from sift.errors import TargetBusy, TargetFailed

_RAW = "Use mode raw to get the bytes."


class Crashed(TargetFailed):
    """A child died of a signal while it held the document: a caller with another parser may try that one.

    `signal` is its number.
    """

    def __init__(self, signal: int) -> None:
        self.signal = signal
        super().__init__("damaged", "The document broke its reader.", _RAW)


class Ending(NamedTuple):
    """A fork server's last report of a child: ENDED, OVERDUE or REFUSED, its wait status, and what it used."""

    what: int
    status: int
    peak_kib: int = 0
    cpu_ms: int = 0


def judge(answer: bytes | bytearray, ending: Ending) -> tuple[dict[str, Any], bytes]:
    """Head and body of a child's answer; raises TargetFailed timeout, too_large, damaged, or TargetBusy."""
    if ending.what == frames.REFUSED:
        raise TargetBusy("The worker has no process to give to the document.")
    code = os.waitstatus_to_exitcode(ending.status)
    if ending.what == frames.OVERDUE or code == -signal.SIGXCPU:
        raise too_slow()
    # The child's own word, or the kernel's when the whole machine ran out.
    if code in (frames.OUT_OF_MEMORY, -signal.SIGKILL):
        raise TargetFailed("too_large", "The document needs more memory than it may use.", _RAW)
    if code < 0:
        raise Crashed(-code)
    if code != 0:
        raise TargetFailed("damaged", "The document cannot be read.", _RAW)
    try:
        return frames.unpack(answer)
    except ValueError as error:
        raise TargetFailed("damaged", "The document cannot be read.", _RAW) from error


def too_slow() -> TargetFailed:
    """The error of a document whose time was over."""
    return TargetFailed("timeout", "The document took too long to read.", _RAW)
