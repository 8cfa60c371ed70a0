"""Passages: what they hold, how they rank, and how they are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift.content import passages as module
from sift.content.passages import Passage, answer, choose, rank, show, split_passages
from sift.errors import TargetFailed

PAGE = """# Harbours

Introduction to the harbours of the coast.

## Brume

The quay of Brume was rebuilt in 1931.

### Ferries

Line seven sails at noon.

## Manara

The lighthouse of Manara is 41 metres high.

```python
# not a heading
x = 1
```
"""


def texts(question: str, text: str = PAGE, context: int = 0) -> list[str]:
    content, _, _ = answer(split_passages(text), question, context)
    return content.split("<!-- ")[1:]


def test_headings_are_kept_with_their_passage() -> None:
    found = split_passages(PAGE)
    assert [(p.first, p.last, p.headings) for p in found] == [
        (3, 3, ("# Harbours",)),
        (7, 7, ("# Harbours", "## Brume")),
        (11, 11, ("# Harbours", "## Brume", "### Ferries")),
        (15, 20, ("# Harbours", "## Manara")),
    ]
    assert "# not a heading" in found[3].text


def test_without_markdown_no_line_is_a_heading() -> None:
    assert split_passages("# a\nb", markdown=False) == [Passage(1, 2, (), "# a\nb")]


def test_pages_are_kept_with_their_passage() -> None:
    text = "<!-- page 3 -->\n\nfirst\n\n<!-- page 9 -->\n\nsecond\n"
    assert [(p.page, p.text) for p in split_passages(text, paged=True)] == [(3, "first"), (9, "second")]
    assert show(split_passages(text, paged=True)[1:]) == "<!-- page 9, line 7 -->\n\nsecond"


@given(
    st.lists(st.sampled_from(["", "word " * 5, "word " * 60, "x" * 4_000, "# head", "```", "終わり。" * 500])),
    st.booleans(),
)
def test_no_text_is_lost(lines: list[str], markdown: bool) -> None:
    found = split_passages("\n".join(lines), markdown=markdown)
    kept = "".join("".join(p.text.split()) for p in found)
    for line in lines:
        if line and line != "# head":
            assert "".join(line.split()) in kept
    assert all(p.text.strip() and p.first <= p.last for p in found)
    assert all(len(p.text) <= 4 * module.LONGEST_CHARS for p in found)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How high is the lighthouse?", "41 metres"),
        ("When does the ferry at Brume sail?", "Line seven"),
        ("quay rebuilt", "1931"),
        ("HÁRBOUR coast", "Introduction"),
    ],
)
def test_the_best_passage_comes_first(question: str, words: str) -> None:
    assert words in texts(question)[0]


@pytest.mark.parametrize(
    ("lines", "question", "words"),
    [
        (
            ["川の水位は毎朝測ります。", "港には三つの灯台があります。", "船は正午に出ます。"],
            "灯台はいくつありますか",
            "三つ",
        ),
        (["渡船每天早上六點開航。", "票價為三元。", "碼頭在河的南岸。"], "票價是多少", "三元"),
        (["ระดับน้ำวัดทุกเช้า", "ประภาคารสูงสี่สิบเมตร", "เรือออกตอนเที่ยง"], "ประภาคารสูงเท่าไร", "สี่สิบ"),
        (
            ["Ледокол вышел утром.", "Маяк построен в 1931 году.", "Паром идёт в полдень."],
            "когда построен маяк",
            "1931",
        ),
        (["뱃길은 아침에 열린다.", "등대의 높이는 41미터이다.", "배는 정오에 떠난다."], "등대 높이", "41"),
    ],
)
def test_other_languages(lines: list[str], question: str, words: str) -> None:
    text = "\n\n".join(line + " " * module.PASSAGE_CHARS for line in lines)
    assert words in texts(question, text)[0]


def test_a_long_line_is_split_where_sentences_end() -> None:
    text = "川の水位は今日も高い。" * 400 + "灯台は四十一メートルです。" + "船は正午に出ます。" * 400
    content, places, _ = answer(split_passages(text), "灯台", 0)
    assert "灯台は四十一メートルです。" in content
    assert len(content) < 2 * module.LONGEST_CHARS
    assert places == [{"lines": [1, 1], "headings": []}]


def test_neighbours_are_context_and_touching_groups_are_one() -> None:
    found = [Passage(n, n, ("# A",) if n < 5 else ("# A", "## B"), f"text {n}") for n in range(1, 9)]
    assert [[p.first for p in group] for group in choose(found, [6, 1], 1, 10_000)] == [[6, 7, 8], [1, 2, 3]]
    assert [[p.first for p in group] for group in choose(found, [3, 1], 1, 10_000)] == [[1, 2, 3, 4, 5]]
    assert [[p.first for p in group] for group in choose(found, [3, 4], 0, 10_000)] == [[4], [5]]
    assert show(found[3:5]) == "<!-- lines 4-5 -->\n\n# A\n\ntext 4\n\n## B\n\ntext 5"
    assert show(found[3:4]) == "<!-- line 4 -->\n\n# A\n\ntext 4"


def test_only_so_much_is_shown() -> None:
    found = [Passage(n, n, (), "x" * 100) for n in range(20)]
    assert len(choose(found, list(range(20)), 0, 10_000)) == module.MOST_PASSAGES
    assert [[p.first for p in group] for group in choose(found, [5, 9], 1, 400)] == [[4, 5, 6], [9]]
    assert [[p.first for p in group] for group in choose(found, [5, 9], 0, 50)] == [[5]]


def test_words_that_stand_everywhere_are_no_answer() -> None:
    found = [Passage(n, n, (), f"der Hafen und das Schiff {n}") for n in range(8)]
    assert rank(found, "Wo ist der Hafen und das Schiff?") == []
    assert rank(found, "Hafen 3") == [3]


@pytest.mark.parametrize("question", ["purple elephants", "What is the price?", "何ですか"])
def test_no_overlap_is_no_match(question: str) -> None:
    with pytest.raises(TargetFailed) as caught:
        answer(split_passages(PAGE), question, 1)
    assert (caught.value.code, bool(caught.value.hint)) == ("no_match", True)


def test_a_text_too_large_to_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_INPUT_CHARS", 100)
    with pytest.raises(TargetFailed) as caught:
        answer(split_passages(PAGE), "Brume", 1)
    assert caught.value.code == "filter_limit"


@pytest.mark.parametrize(
    "line",
    ["<!-- page 9, lines 70-77 -->", "<!-- line 3 -->", "  <!-- lines 3-4 -->", "<!--LINE\t9-->", "<!-- page 3 -->"],
)
def test_a_line_of_the_text_is_no_mark_of_a_place(line: str) -> None:
    text = f"The lantern is old.\n{line}\nThe lantern is blue."
    shown, places, _ = answer(split_passages(text), "How old is the lantern?", 0)
    marked = line.replace("<", "\\<")
    assert shown == f"<!-- lines 1-3 -->\n\nThe lantern is old.\n{marked}\nThe lantern is blue.\n"
    assert [place["lines"] for place in places] == [[1, 3]]
