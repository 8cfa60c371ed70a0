"""What the filters of a target make of its text, in their order: jq or grep, then question."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
from typing import TYPE_CHECKING, Any

from sift.content.sniff import Sniffed
from sift.errors import TargetFailed

if TYPE_CHECKING:
    from sift.content.passages import Passage

#: Processor seconds that the filters of one target may take together.
FILTER_CPU_S = 3.0
#: What ends a child whose filters took longer; nothing else sends it.
OVERTIME = signal.SIGPROF

_MARKDOWN, _PLAIN, _JSON_LINES = "text/markdown", "text/plain", "application/x-ndjson"
_PAGE_MARK = re.compile(r"<!-- page ([0-9]+) -->\n")


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
    if filters.get("jq") is not None and mode != "raw" and found.kind not in ("json", "jsonl", "text"):
        raise TargetFailed(
            "bad_jq",
            f"jq is for JSON, and the document is {found.media_type}.",
            "Use `grep` or `question` for it, or mode raw when it is JSON under another name.",
        )


def apply_filters(
    filters: dict[str, Any], found: Sniffed, content: str, content_type: str, meta: dict[str, Any]
) -> tuple[str, str, dict[str, Any]]:
    """Content, its type and its meta after `filters` (jq, grep, question, context; what is None does nothing).

    Raises TargetFailed bad_jq, damaged, bad_grep, filter_limit, no_match.
    """
    from sift.content.grep import grep, join_blocks
    from sift.content.passages import Passage, answer, split_passages
    from sift.content.query import run_program

    question = filters.get("question")
    # With a question there is context unless it is declined: without its surroundings a passage is hard to judge.
    asked_context = filters.get("context")
    context: int = (1 if question is not None else 0) if asked_context is None else asked_context
    passages: list[Passage] | None = None
    paged = "pages" in meta and content_type != _JSON_LINES  # links stand without marks of their pages
    if (program := filters.get("jq")) is not None:
        content, matches = run_program(program, content, damaged=found.kind == "json")
        content_type, meta = _JSON_LINES, {**meta, "matches": matches}
        passages = [
            Passage(number, number, (), line) for number, line in enumerate(content.removesuffix("\n").split("\n"), 1)
        ]
    elif (pattern := filters.get("grep")) is not None:
        blocks, matches = grep(content, pattern, context, paged=paged)
        content, content_type, meta = join_blocks(blocks), _PLAIN, {**meta, "matches": matches}
        passages, context = [_passage(block) for block in blocks], 0
    if question is not None:
        if passages is None:
            passages = split_passages(content, markdown=content_type == _MARKDOWN, paged=paged)
        content, places, count = answer(passages, question, context)
        meta = {"matches": count, **meta, "passages": places, "answered_by": "passages"}
        content_type = _MARKDOWN
    return content, content_type, meta


def _passage(block: str) -> Passage:
    """A block of grep as a passage: its lines are numbered already."""
    from sift.content.passages import Passage

    mark = _PAGE_MARK.match(block)
    text = block[mark.end() :] if mark else block
    numbers = [int(line.partition(" ")[0][:-1]) for line in text.split("\n")]
    return Passage(numbers[0], numbers[-1], (), text, int(mark[1]) if mark else None)


def overtime() -> TargetFailed:
    """The error of a target whose filters were ended."""
    return TargetFailed(
        "filter_limit",
        "The filter needs more time or memory than it may use.",
        "Make it simpler, or narrow what it reads.",
    )
