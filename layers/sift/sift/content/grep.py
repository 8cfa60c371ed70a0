"""The lines of a text that match a pattern, with their numbers and the lines around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sift.errors import TargetFailed
from sift.patterns import compile_pattern

MAX_INPUT_BYTES = 10_000_000
MAX_MATCHES = 100_000
MAX_OUTPUT_BYTES = 4_000_000

_PAGE_MARK = re.compile(rb"^<!-- page [0-9]+ -->$", re.M)


def grep(text: str, pattern: str, context: int = 0, *, paged: bool = False) -> tuple[list[str], int]:
    """Blocks of lines around the matches, and how many lines match.

    Each line of a block reads `12: text` when it matches and `11- text` when it is one of the `context` lines around;
    blocks that touch are one. `paged`: the text has page marks of its own, lines that never match; each block then
    starts with the mark of its page.
    Raises TargetFailed bad_grep, filter_limit, no_match.
    """
    data = text.replace("\r\n", "\n").encode("utf-8", "replace")
    if len(data) > MAX_INPUT_BYTES:
        raise _too_much(f"The text has {len(data)} bytes; grep reads {MAX_INPUT_BYTES}.")
    try:
        expression = compile_pattern(pattern)
    except ValueError as error:
        raise TargetFailed("bad_grep", f"The pattern is none of RE2: {error}.", "Correct the pattern.") from None
    blocks = _Blocks(data, context, paged)
    matches = 0
    for number, start in _matching(data, expression, paged):
        matches += 1
        if matches > MAX_MATCHES:
            raise _too_much(f"More than {MAX_MATCHES} lines match.")
        blocks.add(number, start)
    if not matches:
        raise TargetFailed("no_match", "No line matches the pattern.", "Try another pattern, such as (?i)word.")
    return blocks.close(), matches


def join_blocks(blocks: Sequence[str]) -> str:
    """Blocks as one text, `--` between them."""
    return "\n--\n".join(blocks) + "\n"


def _matching(data: bytes, expression: Any, paged: bool) -> Iterator[tuple[int, int]]:
    """Number and start of each line that matches."""
    number, position = 1, 0
    while position < len(data):
        found = expression.search(data, position)
        if found is None or (start := data.rfind(b"\n", 0, found.start()) + 1) >= len(data):
            return  # what follows the last newline is no line
        number += data.count(b"\n", position, start)
        if not (paged and _PAGE_MARK.match(data, start)):
            yield number, start
        position = _line_end(data, start) + 1
        number += 1


class _Blocks:
    """Collects blocks from matching lines in their order."""

    def __init__(self, data: bytes, context: int, paged: bool) -> None:
        self._data = data
        self._context = context
        self._paged = paged
        self._done: list[str] = []
        self._block: list[str] = []
        self._size = 0
        # The line after the last one that was shown: its number and where it starts.
        self._number, self._start = 1, 0
        self._mark, self._looked = "", 0

    def add(self, number: int, start: int) -> None:
        gap = number - self._number
        if self._block and gap <= 2 * self._context:
            self._show_after(gap)
        else:
            self.close()
            self._show_before(number, start, min(self._context, gap))
        self._show(number, start, ":")

    def close(self) -> list[str]:
        """End the block that is open; all blocks so far."""
        if self._block:
            self._show_after(self._context)
            self._done.append("\n".join(self._block))
            self._block = []
        return self._done

    def _show_after(self, count: int) -> None:
        for _ in range(count):
            if self._start >= len(self._data):
                return
            self._show(self._number, self._start, "-")

    def _show_before(self, number: int, start: int, count: int) -> None:
        starts = [start]
        for _ in range(count):
            starts.append(self._data.rfind(b"\n", 0, starts[-1] - 1) + 1)
        if self._paged and (mark := self._mark_at(starts[-1])):
            self._block.append(mark)
        for back in range(count, 0, -1):
            self._show(number - back, starts[back], "-")

    def _mark_at(self, start: int) -> str:
        """The page mark that is in force at a line, "" when the line is one; asked in the order of the lines."""
        for found in _PAGE_MARK.finditer(self._data, self._looked, _line_end(self._data, start)):
            self._mark = "" if found.start() == start else found[0].decode()
        self._looked = start
        return self._mark

    def _show(self, number: int, start: int, sign: str) -> None:
        end = _line_end(self._data, start)
        self._block.append(f"{number}{sign} {self._data[start:end].decode('utf-8', 'replace')}")
        self._size += end - start + 12
        if self._size > MAX_OUTPUT_BYTES:
            raise _too_much(f"What matches is over {MAX_OUTPUT_BYTES} bytes.")
        self._number, self._start = number + 1, end + 1


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _too_much(detail: str) -> TargetFailed:
    return TargetFailed("filter_limit", detail, "Narrow the pattern or the context, or ask for fewer pages.")
