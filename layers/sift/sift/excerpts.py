"""Parts of a stored text, counted in characters: where a long document goes on without being fetched again."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from sift.errors import Invalid

#: At four bytes a character an excerpt stays at what one answer may carry.
MAX_CHARS = 1_000_000
# Decoded at once, in bytes: what is read of a large text is never in memory twice.
_CHUNK = 1 << 20

# Types of text outside of text/*: scripts, data and settings.
_TEXTUAL = frozenset(
    "application/" + name
    for name in (
        *("javascript", "x-javascript", "ecmascript", "typescript", "graphql", "sql", "x-sh", "x-tex", "x-subrip"),
        *("yaml", "x-yaml", "toml", "ndjson", "x-ndjson", "jsonl", "x-jsonlines", "csv", "x-csv", "xml-dtd"),
    )
)
# ASCII in UTF-16 or UTF-32 is valid UTF-8, with NUL between the characters; so is text in ISO 2022, with its shifts.
_OF_OTHERS = re.compile("\0|\x1b(?:\\$[@B(),]|\\([IJ])")


@dataclass(frozen=True)
class Excerpt:
    """Characters of a text from an offset on, how many the whole has, and where to go on (None at its end)."""

    text: str
    chars: int
    next_offset: int | None


def is_text(media_type: str) -> bool:
    """Whether content of this type is characters."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind.endswith(("json", "xml")) or kind in _TEXTUAL


def is_of_another(text: str) -> bool:
    """Whether what is valid UTF-8 was written in another encoding."""
    return _OF_OTHERS.search(text) is not None


def cut(data: bytes, media_type: str, offset: int | None, max_chars: int | None) -> Excerpt:
    """`max_chars` characters (Unicode code points; by default as many as there may be) from `offset` (from 0) on.

    Raises Invalid for content that is no text, or is in another encoding than UTF-8, and for an offset beyond its end.
    """
    first = offset or 0
    end = first + (MAX_CHARS if max_chars is None else max_chars)
    parts: list[str] = []
    seen = 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    try:
        if not is_text(media_type):
            raise ValueError
        for start in range(0, len(data) or 1, _CHUNK):
            piece = decoder.decode(view[start : start + _CHUNK], start + _CHUNK >= len(data))
            if is_of_another(piece):
                raise ValueError
            parts.append(piece[max(0, first - seen) : max(0, end - seen)])
            seen += len(piece)
    except ValueError:  # of another type, or `raw` bytes in another encoding
        hint = "Leave `offset` and `max_chars` out: the content is read whole."
        raise Invalid("invalid_request", f"The content is {media_type}, not UTF-8 text to count in.", hint) from None
    if first > seen:
        detail = f"offset: {first} is beyond the end"
        extra = {"fields": [{"field": "offset", "detail": detail}], "chars": seen}
        raise Invalid("invalid_request", f"{detail}: the content has {seen} characters.", "Start below.", extra=extra)
    return Excerpt("".join(parts), seen, end if end < seen else None)
