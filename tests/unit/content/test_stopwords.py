"""Stop words as hashes: the same answers as the words themselves."""

from __future__ import annotations

from justext import get_stoplist, get_stoplists

from sift.content.stopwords import StopWords


def test_every_word_of_every_list_and_no_other() -> None:
    words = StopWords()
    known = {word for language in get_stoplists() for word in get_stoplist(language)}
    assert len(known) > 100_000
    assert all(word in words for word in known)
    others = {word[::-1] + "#" for word in known} | {"", "qxzj", "harbourmaster's"}
    assert not any(word in words for word in others - known)
