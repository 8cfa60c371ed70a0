"""What the filters of a target make of its text, in their order: jq or grep."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any

from sift.content.sniff import Sniffed
from sift.errors import TargetFailed

#: Processor seconds that the filters of one target may take together.
FILTER_CPU_S = 3.0
#: What ends a child whose filters took longer; nothing else sends it.
OVERTIME = signal.SIGPROF

_PLAIN, _JSON_LINES = "text/plain", "application/x-ndjson"


def confine() -> None:
    """Prepare this process, a document's child, for filters: no environment, and its end when they take too long.

    Only a signal stops a library in its own loop; jq's `env` shows what a C library finds, which may be more than
    `os.environ` knows.
    """
    os.environ.clear()
    if sys.platform == "linux":
        ctypes.CDLL(None).clearenv()
        os.putenv("NONE", "")  # a list of nothing again: jq reads one that is not there, and dies
        os.unsetenv("NONE")
    signal.signal(OVERTIME, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, FILTER_CPU_S)


def check_kind(filters: dict[str, Any], found: Sniffed, mode: str) -> None:
    """Refuse a document that a filter is not for, before it is read (TargetFailed bad_jq)."""
    if filters.get("jq") is not None and mode != "raw" and found.kind not in ("json", "text"):
        raise TargetFailed(
            "bad_jq",
            f"jq is for JSON, and the document is {found.media_type}.",
            "Use `grep` or `question` for it, or mode raw when it is JSON under another name.",
        )


def apply_filters(
    filters: dict[str, Any], found: Sniffed, content: str, content_type: str, meta: dict[str, Any]
) -> tuple[str, str, dict[str, Any]]:
    """Content, its type and its meta after `filters` (jq, grep, context; what is absent or None does nothing).

    Raises TargetFailed bad_jq, damaged, bad_grep, filter_limit, no_match.
    """
    from sift.content.grep import grep, join_blocks
    from sift.content.query import run_program

    if (program := filters.get("jq")) is not None:
        content, outputs = run_program(program, content, damaged=found.kind == "json")
        content_type, meta = _JSON_LINES, {**meta, "matches": outputs}
    if (pattern := filters.get("grep")) is not None:
        blocks, matches = grep(content, pattern, filters.get("context") or 0, paged="pages" in meta)
        content, content_type, meta = join_blocks(blocks), _PLAIN, {**meta, "matches": matches}
    return content, content_type, meta


def overtime() -> TargetFailed:
    """The error of a target whose filters were ended."""
    return TargetFailed(
        "filter_limit",
        "The filter needs more time or memory than it may use.",
        "Make it simpler, or narrow what it reads.",
    )
