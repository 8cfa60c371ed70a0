"""Page ranges."""

from __future__ import annotations

import pytest

from sift.content.pages import check_ranges, describe_pages, select_pages
from sift.errors import TargetFailed


@pytest.mark.parametrize(
    ("text", "total", "pages"),
    [
        (None, 3, [1, 2, 3]),
        ("2", 3, [2]),
        ("1-2,2,3", 3, [1, 2, 3]),
        ("2-", 4, [2, 3, 4]),
        ("-1", 4, [4]),
        ("-2, 1", 4, [1, 3]),
        ("3-9", 4, [3, 4]),
        ("1-999999", 2, [1, 2]),
    ],
)
def test_ranges(text: str | None, total: int, pages: list[int]) -> None:
    assert select_pages(text, total) == pages


@pytest.mark.parametrize("text", ["", "0", "3-1", "a", "1,,2", "-0", "1-2-3", "--1", "1:3", "0-2", "9" * 9, "²"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(TargetFailed) as caught:
        check_ranges(text)
    assert caught.value.code == "bad_pages"
    assert caught.value.hint


@pytest.mark.parametrize("text", ["5", "7-", "-9"])
def test_a_range_beyond_the_document(text: str) -> None:
    with pytest.raises(TargetFailed) as caught:
        select_pages(text, 4)
    assert caught.value.code == "bad_pages"


def test_describe() -> None:
    assert describe_pages([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
    assert describe_pages([]) == ""
