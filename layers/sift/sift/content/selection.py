"""Which stretches of a page's text are its content, by what trafilatura kept and by where they stand."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sift.content.dom import Element
from sift.content.tables import is_code_table, is_data_table

# A stretch was kept when this share of its word sequences occurs in what trafilatura kept.
KEPT_SHARE = 0.8
SEQUENCE = 4
# A form that holds this much of the page is the page (ASP.NET wraps whole documents in one).
FORM_SHARE = 0.3
# Less in it, and a `main` is taken for an empty frame.
MAIN_WORDS = 10
# With less of what was kept inside `main`, the page uses the element for something else.
INSIDE_SHARE = 0.3
# The smallest element that holds this share of what was kept holds the content; what was found elsewhere, by chance.
HELD_SHARE = 0.85
# What lies between two long stretches that were kept, and is no list of links, belongs with them.
LONG_WORDS, ITEM_WORDS, ITEM_LINKED, HEADING_LINKED = 8, 2, 0.3, 0.5
# Of a table or a listing, all is content or nothing.
UNIT_SHARE = 0.5

_WORD = re.compile(r"\w+")
_ASIDE = frozenset({"nav", "footer", "aside", "button", "dialog", "label"})
_ASIDE_ROLES = frozenset(
    "navigation complementary search dialog alertdialog contentinfo banner menu toolbar alert tablist status".split()  # noqa: SIM905
)
_TELLING = _ASIDE | {"a"}
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_RELATED = re.compile(
    r"relat|recommend|more-|similar|you-may|also-|popular|trending|most-|latest|recent|upsell|cross-sell|teaser|promo",
    re.I,
)


@dataclass(slots=True)
class Run:
    """A stretch of inline text directly in a block: its words, how many stand in links, and where it is.

    `places`: its leaves as (parent, index among the parent's children). `unit`: the table or listing around it.
    """

    block: Element
    words: list[str]
    linked: int
    places: list[tuple[Element, int]]
    aside: bool
    in_main: bool
    related: bool
    unit: Element | None
    kept: bool = False


@dataclass(slots=True)
class _Context:
    block: Element
    aside: bool = False
    form: bool = False
    in_main: bool = False
    related: int = 2  # blocks since one whose name says that it leads elsewhere
    linked: bool = False
    unit: Element | None = None


def read_runs(body: Element) -> list[Run]:
    """All stretches of text below an element, in document order."""
    runs: list[Run] = []
    in_form: list[Run] = []
    places: list[tuple[Element, int]] = []
    texts: list[str] = []
    linked: list[str] = []

    def close(context: _Context) -> None:
        if not texts:
            return
        text = "".join(texts)
        if text and not text.isspace():
            run = Run(
                context.block,
                _words(text),
                len(_WORD.findall(" ".join(linked))) if linked else 0,
                places[:],
                context.aside,
                context.in_main,
                context.related <= 1,
                context.unit,
            )
            runs.append(run)
            if context.form:
                in_form.append(run)
        places.clear()
        texts.clear()
        linked.clear()

    # Each element that is open, with what is left of its children; a step is a text or an element that opens.
    above: list[tuple[Element, enumerate[Element | str], _Context]] = []
    parent, rest, context = body, enumerate(body.children), _Context(body)
    while True:
        for index, child in rest:
            if isinstance(child, str) or child.tag == "br":
                text = child if isinstance(child, str) else "\n"
                places.append((parent, index))
                texts.append(text)
                if context.linked:
                    linked.append(text)
                continue
            inner = _enter(child, context)
            if child.is_block:
                close(context)
            if child.children:
                above.append((parent, rest, context))
                parent, rest, context = child, enumerate(child.children), inner
                break
        else:
            if parent.is_block:
                close(context)
            if not above:
                break
            parent, rest, context = above.pop()
    if sum(len(run.words) for run in in_form) < FORM_SHARE * sum(len(run.words) for run in runs):
        for run in in_form:
            run.aside = True
    return runs


def _enter(element: Element, around: _Context) -> _Context:
    tag, attrs, is_block = element.tag, element.attrs, element.is_block
    if not is_block and not attrs and tag not in _TELLING:
        return around
    related = around.related + 1 if is_block else around.related
    role = ""
    if attrs:
        role = attrs.get("role", "")
        if _leads_elsewhere(attrs.get("class", ""), attrs.get("id", ""), attrs.get("itemprop", "")):
            related = 0
    unit = around.unit
    if unit is None and tag == "table" and is_code_table(element) is None:
        # Said now: a table that has lost most of its text may look like another.
        element.layout = not is_data_table(element)
    if unit is None and tag in ("pre", "table") and not element.layout:
        unit = element
    if not is_block and related == around.related and unit is around.unit and not role and tag not in _TELLING:
        return around
    return _Context(
        element if is_block else around.block,
        around.aside or tag in _ASIDE or role in _ASIDE_ROLES,
        around.form or tag == "form",
        around.in_main or tag == "main" or role == "main",
        related,
        around.linked or tag == "a",
        unit,
    )


@functools.lru_cache(maxsize=4096)
def _leads_elsewhere(*names: str) -> bool:
    return any(name and _RELATED.search(name) is not None for name in names)


def find_outside(runs: list[Run]) -> list[Run]:
    """The stretches outside of menus, forms and asides."""
    return [run for run in runs if run.words and not run.aside]


def find_region(runs: list[Run]) -> tuple[list[Run], bool]:
    """The stretches outside of menus, forms and asides, of `main` where there is one; and whether there is."""
    outside = find_outside(runs)
    inside = [run for run in outside if run.in_main]
    if count_words(inside) >= MAIN_WORDS:
        return inside, True
    return outside, False


def keep_known(runs: list[Run], text: str) -> None:
    """Mark the stretches that occur, nearly word for word, in a text."""
    words = _read_kept(text)
    asked: list[set[tuple[str, ...]]] = [set() for _ in range(SEQUENCE)]
    for run in runs:
        if len(run.words) < SEQUENCE:
            asked[len(run.words)].add(tuple(run.words))
    known = [here.intersection(_sequences(words, length)) for length, here in enumerate(asked)]
    known.append(set(_sequences(words, SEQUENCE)))
    for run in runs:
        own = run.words
        if not own:
            continue
        length = min(SEQUENCE, len(own))
        found = sum(map(known[length].__contains__, _sequences(own, length)))
        run.kept = found >= KEPT_SHARE * (len(own) - length + 1)


def _sequences(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    return zip(*[words[start:] for start in range(length)], strict=False)


def keep_all(runs: list[Run], region: list[Run]) -> None:
    """Mark a region, or the whole page when there is nothing in it."""
    for run in runs:
        run.kept = False
    for run in region or runs:
        run.kept = bool(run.words)
    settle_units(runs)


def complete(elements: Sequence[Element], runs: list[Run], region: list[Run], *, gapless: bool) -> None:
    """Settle what trafilatura's choice leaves open: units, lists and listings between, headings, related pages.

    `gapless`: nothing is left out between the first and the last long stretch that was kept.
    """
    if count_kept(region) > INSIDE_SHARE * count_kept(runs):
        inside = {id(run) for run in region}
        for run in runs:
            run.kept = run.kept and id(run) in inside
    drop_outside(find_holder(elements, runs, HELD_SHARE), runs)
    long = [index for index, run in enumerate(region) if run.kept and len(run.words) >= LONG_WORDS]
    for run in region[long[0] : long[-1]] if long else ():
        run.kept = run.kept or bool(run.words and (gapless or _belongs_between(run)))
    settle_units(runs)
    after = False
    for run in reversed(region):
        if after and run.block.tag in HEADINGS:
            run.kept = True
        after = run.kept
    kept = [run for run in runs if run.kept]
    related = [run for run in kept if run.related]
    if 2 * len(related) < len(kept):
        for run in related:
            run.kept = False


def _belongs_between(run: Run) -> bool:
    tag = run.block.tag
    if run.linked >= (HEADING_LINKED if tag in HEADINGS else ITEM_LINKED) * len(run.words):
        return tag == "pre"
    return tag in ("pre", *HEADINGS) or (tag == "li" and len(run.words) >= ITEM_WORDS)


def settle_units(runs: list[Run]) -> None:
    """Keep or drop each table and listing as a whole."""
    units: dict[int, list[Run]] = {}
    for run in runs:
        if run.unit is not None:
            units.setdefault(id(run.unit), []).append(run)
    for members in units.values():
        filled = [run.kept for run in members if run.words]
        whole = sum(filled) >= UNIT_SHARE * len(filled) > 0
        for run in members:
            run.kept = whole


def clear_others(runs: list[Run]) -> None:
    """Take the text of all stretches that are not kept out of their tree."""
    for run in runs:
        if not run.kept:
            for parent, index in run.places:
                parent.children[index] = ""


def weigh_kept(elements: Sequence[Element], runs: list[Run]) -> dict[int, int]:
    """The words of all that is kept in each of a page's elements, by their ids; elements without any are missing."""
    weights: dict[int, int] = {}
    for run in runs:
        if run.kept:
            weights[id(run.block)] = weights.get(id(run.block), 0) + len(run.words)
    for element in reversed(elements):  # children come before their parents this way
        if (above := element.parent) is not None and (weight := weights.get(id(element))):
            weights[id(above)] = weights.get(id(above), 0) + weight
    return weights


def find_holder(elements: Sequence[Element], runs: list[Run], share: float = 1.0) -> Element:
    """The smallest of a page's elements that holds this share of all that is kept, in words."""
    weights = weigh_kept(elements, runs)
    holder = elements[0]
    least = share * weights.get(id(holder), 0)
    while least:
        heavy = [c for c in holder.children if isinstance(c, Element) and weights.get(id(c), 0) >= least]
        if not heavy or heavy[0].tag in _RENDERED_WHOLE:
            break
        holder = heavy[0]
    return holder


def drop_outside(holder: Element, runs: list[Run]) -> None:
    """Unmark what does not stand in an element."""
    inside = {id(element) for element in holder.walk()}
    for run in runs:
        run.kept = run.kept and id(run.block) in inside


# An element whose mark-up is part of what it says.
_RENDERED_WHOLE = frozenset({"table", "tbody", "tr", "ul", "ol", "menu", "dir", "p", "pre", *HEADINGS})


def count_kept(runs: list[Run]) -> int:
    """The words of the stretches that are kept."""
    return sum(len(run.words) for run in runs if run.kept)


def count_words(runs: list[Run]) -> int:
    """The words of all these stretches."""
    return sum(len(run.words) for run in runs)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@functools.lru_cache(maxsize=1)
def _read_kept(text: str) -> list[str]:
    return _words(text)


def count_text(text: str) -> int:
    """The words of a text."""
    return len(_read_kept(text))
