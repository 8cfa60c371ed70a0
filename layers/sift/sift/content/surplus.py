"""What was kept and says nothing of its own: what a page names as its controls and notices, and what stands twice."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

from sift.content.dom import Element
from sift.content.selection import HEADINGS, Run, count_kept, count_words, weigh_kept

# Words that class names are made of: controls and notices around the content, whatever the page is about. Not ids:
# these name what a text is about as often (`<section id="filters">` in the manual of a library).
_APPARATUS = frozenset(
    "compare disclaimer facet facets filter filters form forms legal modal newsletter popover popup "  # noqa: SIM905
    "sidebar signup sr subscribe tooltip visually".split()
)
# Class names that say what an element lacks or holds, not what it is; and those of an entry in WordPress, which writes
# its categories and tags there as well (`post-7 hentry category-legal tag-forms`).
_NOT_ITSELF = re.compile(r"(?:[\w-]+:)*(?:no|not|has|with|without)[-_]")
_ENTRY = re.compile(r"(?<!\S)(?:post-\d+|h-?entry)(?!\S)")
# Parts of class names that tell one of many alike from the others.
_OF_ONE = re.compile(r"\d|(?<![A-Za-z])(?:odd|even|first|last|alt)(?![A-Za-z])")
# On the page of a product, what others say of it or of its seller.
_VOICES = frozenset({"feedback", "rating", "ratings", "review", "reviews"})
# An element that holds this much of what was kept is the content, whatever its name; so are all of them together.
APPARATUS_SHARE, APPARATUS_TOGETHER = 0.3, 0.5
# The voices may well be most of a product's page, but hardly all of it.
VOICES_TOGETHER = 0.9
# More than this before the title, and it is no title, but a heading among others.
BEFORE_SHARE = 0.3
# So many words without a link are a lede, and stay.
LEDE_WORDS = 15
# Shorter ones are prices, labels and names, which stand where they belong. In other texts than those of products, so do
# sentences: what a method's summary and its entry say, or the notes of two versions.
REPEATED_WORDS, REPEATED_WORDS_OF_PRODUCT = 12, 6

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def drop_named(elements: Sequence[Element], runs: list[Run], *, reviews: bool) -> None:
    """Unmark what stands in controls and notices by their names; `reviews`: and in reviews."""
    _drop(elements, runs, _is_apparatus, APPARATUS_SHARE, APPARATUS_TOGETHER)
    if reviews:
        _drop(elements, runs, _is_voice, 1.0, VOICES_TOGETHER)


def _drop(
    elements: Sequence[Element],
    runs: list[Run],
    is_named: Callable[[dict[str, str]], bool],
    share: float,
    together: float,
) -> None:
    weights = weigh_kept(elements, runs)
    total = weights.get(id(elements[0]), 0)
    named: set[int] = set()
    for element in elements:  # parents come before their children
        weight, above = weights.get(id(element), 0), element.parent
        if not weight or above is None:
            continue
        is_part = element.attrs and weight < share * total and not _is_unit(element)
        if id(above) in named or (is_part and is_named(element.attrs)):
            named.add(id(element))
    # A table is kept or dropped whole.
    surplus = [run for run in runs if run.kept and id(run.unit or run.block) in named]
    if count_words(surplus) < together * total:
        for run in surplus:
            run.kept = False


def _is_unit(element: Element) -> bool:
    """Whether it is a table of data or a listing: no control, whatever it is called."""
    return element.tag == "pre" or (element.tag == "table" and not element.layout)


def _is_apparatus(attrs: dict[str, str]) -> bool:
    return not _APPARATUS.isdisjoint(_words(attrs.get("class", "")))


def _is_voice(attrs: dict[str, str]) -> bool:
    return any(not _VOICES.isdisjoint(_words(attrs.get(name, ""))) for name in ("class", "id", "itemprop"))


@functools.lru_cache(maxsize=4096)
def _words(names: str) -> frozenset[str]:
    if _ENTRY.search(names):
        return frozenset()
    own = [name for name in names.split() if not _NOT_ITSELF.match(name)]
    return frozenset(word.lower() for name in own for word in _WORD.findall(name))


def drop_before_title(runs: list[Run]) -> None:
    """Unmark what stands before the page's one `h1`, unless it is much of what was kept, has a heading of its own or is
    a lede."""
    titles = [index for index, run in enumerate(runs) if run.words and run.block.tag == "h1"]
    if len(titles) == 1:
        before = [run for run in runs[: titles[0]] if run.kept]
        is_one_of_many = any(run.block.tag in HEADINGS for run in before)
        if not is_one_of_many and count_words(before) < BEFORE_SHARE * count_kept(runs):
            for run in before:
                run.kept = not run.linked and len(run.words) >= LEDE_WORDS


def drop_repeated(runs: list[Run], *, product: bool) -> None:
    """Unmark the second of two equal stretches in differently made places: a copy for small screens, say.

    In places made alike (rows, cards, posts) they repeat what they have to say. What a table of contents announces is
    no copy either: a heading after a text that is none, and a text after a link of the same words.
    """
    least = REPEATED_WORDS_OF_PRODUCT if product else REPEATED_WORDS
    places: dict[tuple[int, str, str], int] = {}
    known: dict[int, int] = {}
    seen: dict[tuple[str, ...], tuple[int, Run]] = {}
    for run in runs:
        if run.kept and run.unit is None and len(run.words) >= least:
            place, words = _find_place(run.block, places, known), tuple(run.words)
            first_place, first = seen.setdefault(words, (place, run))
            if _announces(first, run):
                seen[words] = place, run
            else:
                run.kept = place == first_place


def _announces(first: Run, second: Run) -> bool:
    """Whether the first of two equal stretches is an entry of contents, and the second what it leads to."""
    if second.block.tag in HEADINGS:
        return first.block.tag not in HEADINGS
    return first.linked == len(first.words) and not second.linked


def _find_place(element: Element, places: dict[tuple[int, str, str], int], known: dict[int, int]) -> int:
    """A number for how an element and all around it are made: their tags and classes."""
    path = []
    above: Element | None = element
    while above is not None and id(above) not in known:
        path.append(above)
        above = above.parent
    place = 0 if above is None else known[id(above)]
    for below in reversed(path):
        place = places.setdefault((place, below.tag, _name_kind(below.attrs.get("class", ""))), len(places) + 1)
        known[id(below)] = place
    return place


@functools.lru_cache(maxsize=4096)
def _name_kind(names: str) -> str:
    """Class names less those of one entry among others: its number, its turn, its categories."""
    if _ENTRY.search(names):
        return "entry"
    return " ".join(name for name in names.split() if not _OF_ONE.search(name))
