"""Words as they are compared."""

from __future__ import annotations

import pytest

from sift.content.words import read_question, read_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The gauges, and stories!", ["the", "gauge", "and", "story"]),
        ("Café NAÏVE Straße ﬁne", ["cafe", "naive", "strasse", "fine"]),
        ("status of a class bus", ["status", "of", "a", "class", "bus"]),
        ("snake_case 4.10", ["snake", "case", "4", "10"]),
        ("ёлка Ледокол", ["елка", "ледокол"]),
        ("مَنارة", ["منارة"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("水位は高い", ["水位", "位は", "は高", "高い"]),
        ("ガラス", ["ガラ", "ラス"]),
        ("猫 cat", ["猫", "cat"]),
        ("ประภา", ["ปร", "ระ", "ะภ", "ภา"]),
        ("한국어는", ["한국", "국어", "어는"]),
        ("水位2m", ["水位", "2m"]),
        ("...", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert read_words(text) == words


def test_what_a_question_asks() -> None:
    assert read_question("What is the price of the ferries?") == {"price", "ferry"}
    assert read_question("Who is it?") == {"who", "is", "it"}
