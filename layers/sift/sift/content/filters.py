"""What the filters of a target make of its text, in the order of their names: grep."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

from sift.errors import TargetFailed

#: Processor seconds that the filters of one target may take together.
FILTER_CPU_S = 4.0
#: What ends a child whose filters took longer; nothing else sends it.
OVERTIME = signal.SIGPROF

_PLAIN = "text/plain"


@contextlib.contextmanager
def limited_time() -> Iterator[None]:
    """Let the filters end the process when they take too long: only a signal stops a library in its own loop."""
    signal.signal(OVERTIME, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, FILTER_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def apply_filters(
    filters: dict[str, Any], content: str, content_type: str, meta: dict[str, Any]
) -> tuple[str, str, dict[str, Any]]:
    """Content, its type and its meta after `filters` (grep, context; what is absent or None does nothing).

    Raises TargetFailed bad_grep, filter_limit, no_match.
    """
    from sift.content.grep import grep, join_blocks

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
