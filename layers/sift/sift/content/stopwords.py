"""The stop words of justext, which trafilatura falls back on, in a thirtieth of their memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left


class StopWords:
    """All words of its hundred lists, as sorted hashes: a child copies the table of all memory that its server has.

    A word that is none of them would have to have the hash, of 64 bits, of one of 150,000.
    """

    def __init__(self) -> None:
        from justext import get_stoplist, get_stoplists  # type: ignore[import-untyped]

        hashes = (hash(word) for language in get_stoplists() for word in get_stoplist(language))
        self._hashes = array("q", sorted(set(hashes)))

    def __contains__(self, word: object) -> bool:
        wanted = hash(word)
        place = bisect_left(self._hashes, wanted)
        return place < len(self._hashes) and self._hashes[place] == wanted


def thin() -> None:
    """Have justext and trafilatura use them, where these would make a tuple and a set of the words: 30 MB."""
    from justext import core
    from trafilatura import external

    core.define_stoplist = lambda words: words
    external.JT_STOPLIST = StopWords()  # type: ignore[assignment]
