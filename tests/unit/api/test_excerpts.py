"""Parts of stored texts: which contents are characters that can be counted."""

from __future__ import annotations

import pytest

from sift.api.excerpts import cut
from sift.errors import Invalid


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
