"""Parts of stored texts: which contents are characters that can be counted."""

from __future__ import annotations

import pytest

from sift.errors import Invalid
from sift.excerpts import cut, is_text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_wide_text_is_not_counted_as_if_it_were_narrow(encoding: str) -> None:
    with pytest.raises(Invalid) as caught:
        cut("The pier".encode(encoding), f"text/plain; charset={encoding}", 0, 4)
    assert caught.value.code == "invalid_request"


def test_no_part_of_a_text_has_a_null_as_its_whole_is_base64() -> None:
    with pytest.raises(Invalid):
        cut(b"a\0bc", "text/plain; charset=utf-8", 2, 1)
    part = cut("a\N{MUSICAL SYMBOL G CLEF}bc".encode(), "text/plain; charset=utf-8", 1, 2)
    assert (part.text, part.chars, part.next_offset) == ("\N{MUSICAL SYMBOL G CLEF}b", 4, 3)


@pytest.mark.parametrize("encoding", ["iso2022_jp", "iso2022_kr"])
def test_text_in_seven_bits_is_not_counted_by_its_shifts(encoding: str) -> None:
    text = "\u6e2f" if encoding == "iso2022_jp" else "\ud56d\uad6c"
    with pytest.raises(Invalid):
        cut(text.encode(encoding), "text/plain", 0, 4)
    assert cut(b"\x1b[31mred\x1b[0m", "text/plain", 5, 3).text == "red"  # a terminal's


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        ("text/html; charset=utf-8", True),
        ("application/javascript", True),
        ("Application/X-JavaScript; charset=utf-8", True),
        ("application/ld+json", True),
        ("image/svg+xml", True),
        ("application/yaml", True),
        ("application/octet-stream", False),
        ("application/pdf", False),
        ("application/javascript-archive", False),
        ("image/png", False),
        ("", False),
    ],
)
def test_types_of_text(media_type: str, text: bool) -> None:
    assert is_text(media_type) == text
