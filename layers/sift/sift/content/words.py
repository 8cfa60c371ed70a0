"""A text as the words to rank by: folded, without accents; pairs of characters where a script writes no spaces."""

from __future__ import annotations

import re
import unicodedata

# Accents of Latin, Greek and Cyrillic, and the vowel points of Hebrew and Arabic: people leave them out.
_POINTS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u065f\u0670]")
# Thai to Tibetan, Myanmar, Khmer, and kana, Han and Hangul (which has spaces, but joins particles to its words).
_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
# Signs of the Indic scripts are no letters to `\w`, and parts of words.
_WORDS = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_]|[\u0900-\u0dff])+")
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")
# Words that say nothing of what is asked. Those of other languages are told by how many passages hold them.
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a about all an and any are as at be been but by can could did do does for from had has have how i if in into "
        "is it its many me more most much my no not of on one or our so some than that the their them there these "
        "they this those to us was we were what when where which who whom whose why will with would you your ",
    )
)


def read_words(text: str) -> list[str]:
    """The words of a text in order, as they are compared."""
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    folded = unicodedata.normalize("NFC", _POINTS.sub("", folded))
    words: list[str] = []
    for run in _WORDS.findall(folded):
        if not _UNSPACED_START.match(run):
            words.append(_singular(run))
        elif len(run) == 1:
            words.append(run)
        else:
            words += (run[place : place + 2] for place in range(len(run) - 1))
    return words


def read_question(text: str) -> set[str]:
    """The words of a question that say what it asks; all of them when none does."""
    words = set(read_words(text))
    return words - _EMPTY or words


def _singular(word: str) -> str:
    """The weakest of stemmers, for English plurals (Harman 1991, "How effective is suffixing?")."""
    if len(word) < 4 or not word.isascii() or not word.endswith("s"):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    return word[:-1] if not word.endswith(("us", "ss")) else word
