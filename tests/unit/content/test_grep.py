"""grep: lines with their numbers, merged blocks, and every limit typed."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift.content import grep as module
from sift.content.grep import grep, join_blocks
from sift.errors import TargetFailed

LINES = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
TEXT = "\n".join(LINES) + "\n"


def shown(pattern: str, context: int = 0, text: str = TEXT, *, paged: bool = False) -> str:
    return join_blocks(grep(text, pattern, context, paged=paged)[0])


def failure(pattern: str, text: str = TEXT, context: int = 0) -> TargetFailed:
    with pytest.raises(TargetFailed) as caught:
        grep(text, pattern, context)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("pattern", "context", "result"),
    [
        ("two", 0, "2: two\n"),
        ("two|six", 0, "2: two\n--\n6: six\n"),
        ("two|three", 0, "2: two\n3: three\n"),
        ("one|eight", 1, "1: one\n2- two\n--\n7- seven\n8: eight\n"),
        ("two|five", 1, "1- one\n2: two\n3- three\n4- four\n5: five\n6- six\n"),
        ("two|six", 1, "1- one\n2: two\n3- three\n--\n5- five\n6: six\n7- seven\n"),
        ("four", 20, "1- one\n2- two\n3- three\n4: four\n5- five\n6- six\n7- seven\n8- eight\n"),
        ("^.{5}$", 0, "3: three\n--\n7: seven\n8: eight\n"),
        ("(?i)SIX", 0, "6: six\n"),
        (r"\Aone", 0, "1: one\n"),
    ],
)
def test_lines_and_blocks(pattern: str, context: int, result: str) -> None:
    assert shown(pattern, context) == result


def test_a_line_that_matches_twice_counts_once() -> None:
    assert grep("a a a\nb\na", "a")[1] == 2


def test_windows_line_ends_belong_to_no_line() -> None:
    assert shown("o$", text="foo\r\nbar\r\n") == "1: foo\n"


@pytest.mark.parametrize("pattern", ["one\ntwo", r"one\s+two", r"(?s)one.two", "[^x]two"])
def test_no_match_crosses_a_line(pattern: str) -> None:
    assert failure(pattern).code == "no_match"


def test_what_follows_the_last_newline_is_no_line() -> None:
    assert grep("a\n\nb\n", "^$")[0] == ["2: "]


def test_other_scripts() -> None:
    assert shown("水位", text="川の水位\nほか\n") == "1: 川の水位\n"
    assert shown(r"^\p{Cyrillic}+$", text="ледокол\nicebreaker\n") == "1: ледокол\n"


PAGES = "<!-- page 3 -->\n\nfirst page\nmore\n\n<!-- page 7 -->\n\nsecond page\n"


def test_blocks_of_a_paged_document_name_their_page() -> None:
    assert shown("page", text=PAGES, paged=True) == (
        "<!-- page 3 -->\n3: first page\n--\n<!-- page 7 -->\n8: second page\n"
    )
    assert shown("first", 2, PAGES, paged=True).startswith("1- <!-- page 3 -->\n2- \n3: first page\n")
    assert shown("more", text=PAGES, paged=True) == "<!-- page 3 -->\n4: more\n"


def test_page_marks_in_other_documents_are_lines_like_any() -> None:
    assert shown("page 7", text=PAGES) == "6: <!-- page 7 -->\n"


@pytest.mark.parametrize("pattern", ["(", "a{2000}", r"(a)\1", "(?=a)", "[z-a]", "x" * 1025, "", r"\pL{900}", "\ud800"])
def test_a_bad_pattern(pattern: str) -> None:
    error = failure(pattern)
    assert error.code == "bad_grep"
    assert "b'" not in error.detail
    assert "(?m)" not in error.detail


def test_a_bad_pattern_is_named_as_it_was_written() -> None:
    assert failure("(?m)a(").detail.endswith(": (?m)a(.")


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure("a", "a" * (module.MAX_INPUT_BYTES + 1)).code == "filter_limit"
    monkeypatch.setattr(module, "MAX_MATCHES", 3)
    assert grep("a\na\na\n", "a")[1] == 3
    assert failure("a", "a\na\na\na\n").code == "filter_limit"
    monkeypatch.setattr(module, "MAX_OUTPUT_BYTES", 1000)
    assert failure("b", "a" * 600 + "\nb\n" + "a" * 600, context=1).code == "filter_limit"


@given(
    st.lists(st.text("ab \u00e9\u65e5", max_size=3), min_size=1, max_size=30),
    st.sampled_from(["a", "^$", "b$", "[^a]"]),
    st.integers(0, 4),
)  # fmt: skip
def test_as_a_plain_search_line_by_line_would_have_it(lines: list[str], pattern: str, context: int) -> None:
    text = "\n".join(lines) + "\n"
    hits = [number for number, line in enumerate(lines, 1) if re.search(pattern, line)]
    near = sorted({n for hit in hits for n in range(hit - context, hit + context + 1) if 1 <= n <= len(lines)})
    if not hits:
        assert failure(pattern, text, context).code == "no_match"
        return
    blocks, matches = grep(text, pattern, context)
    assert matches == len(hits)
    written = [line for block in blocks for line in block.split("\n")]
    assert written == [f"{n}{':' if n in hits else '-'} {lines[n - 1]}" for n in near]
    assert len(blocks) == 1 + sum(after - before > 1 for before, after in itertools.pairwise(near))
