"""Page ranges of a paged document: `1-3,7,12-`, with `-1` as the last page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sift.errors import TargetFailed

_RANGE = re.compile(r"(?P<last>-(?P<back>[0-9]{1,6}))|(?P<first>[0-9]{1,6})(?P<dash>-(?P<end>[0-9]{1,6})?)?")


def check_ranges(text: str) -> None:
    """Refuse a text that is no list of page ranges (TargetFailed bad_pages), before anything is fetched."""
    for part in _split(text):
        _read(part, 1_000_000)


def select_pages(text: str | None, total: int) -> list[int]:
    """The 1-based pages that `text` asks for out of `total`, ascending, each once; None asks for all.

    Raises TargetFailed bad_pages for a bad range, or when it names no page that the document has.
    """
    if text is None:
        return list(range(1, total + 1))
    chosen: set[int] = set()
    for part in _split(text):
        first, last = _read(part, total)
        chosen.update(range(max(first, 1), min(last, total) + 1))
    if not chosen:
        raise _bad(f"The document has {total} pages; {text!r} names none of them.")
    return sorted(chosen)


def describe_pages(pages: Sequence[int]) -> str:
    """Ascending pages as ranges again: [1, 2, 3, 7] is `1-3,7`."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][1] + 1:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _read(part: str, total: int) -> tuple[int, int]:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise _bad(f"{part!r} is no page range.")
    if match["last"]:
        back = int(match["back"])
        if back == 0:
            raise _bad("Pages count from 1.")
        return total - back + 1, total - back + 1
    first = int(match["first"])
    last = first if match["dash"] is None else int(match["end"]) if match["end"] else max(total, first)
    if first == 0 or last < first:
        raise _bad(f"{part!r} is no page range.")
    return first, last


def _bad(detail: str) -> TargetFailed:
    return TargetFailed("bad_pages", detail, "Write ranges like 1-3,7,12- or -1 for the last page.")
