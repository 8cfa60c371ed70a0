"""The main content of a page: trafilatura decides what belongs to it, the page's own tree is what gets rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sift.content.dom import Element
from sift.content.markdown import Keep

# The smallest node that holds this share of what trafilatura kept is the article's root.
HELD_SHARE = 0.85
# A block belongs to the article when this share of its word sequences occurs in what trafilatura kept.
KEPT_SHARE = 0.8
SEQUENCE = 4
# Less than this share of the page's running text, and the extraction is taken to have missed the content.
# A page that calls itself one article is believed: what surrounds a short one is much.
TOO_LITTLE = 0.08
TOO_LITTLE_OF_ARTICLE = 0.0
MIN_WORDS = 20
# Less than this share of it found again in the page's blocks, and what was kept is given as it is.
FOUND_SHARE = 0.5

_WORD = re.compile(r"\w+")
_ASIDE = frozenset({"nav", "footer", "aside", "form", "button", "dialog"})


@dataclass(frozen=True)
class Decision:
    """What trafilatura says: the text it kept, and its metadata by field."""

    text: str
    metadata: dict[str, str]


def decide(html: str, url: str, *, recall: bool = False) -> Decision:
    """Run trafilatura once over a page, for its content and its metadata."""
    import trafilatura

    document: Any = trafilatura.bare_extraction(
        html, url=url, with_metadata=True, include_comments=False, include_tables=True, favor_recall=recall
    )
    if document is None:
        return Decision("", {})
    fields = {name: getattr(document, name, None) for name in ("title", "author", "date", "description", "language")}
    return Decision(document.text or "", {name: str(value) for name, value in fields.items() if value})


def keep_rule(text: str) -> Keep:
    """A judge of leaf blocks: does this text occur, nearly word for word, in `text`?"""
    words = _words(text)
    known = {
        tuple(words[start : start + length])
        for length in range(1, SEQUENCE + 1)
        for start in range(len(words) - length + 1)
    }

    def keep(block: str) -> bool:
        own = _words(block)
        if not own:
            return False
        length = min(SEQUENCE, len(own))
        sequences = [tuple(own[start : start + length]) for start in range(len(own) - length + 1)]
        return sum(sequence in known for sequence in sequences) >= KEPT_SHARE * len(sequences)

    return keep


def find_root(body: Element, keep: Keep) -> Element:
    """The smallest element that holds nearly all of the text that `keep` accepts; `body` when it accepts none."""
    for element in reversed(list(body.walk())):  # children come before their parents this way
        element.weight = sum(child.weight for child in element.children if isinstance(child, Element))
        if element.is_block or element is body:
            element.weight += sum(len(run) for run in _runs(element) if keep(run))
    root, total = body, body.weight
    while True:
        heavy = next(
            (c for c in root.children if isinstance(c, Element) and c.weight and c.weight >= HELD_SHARE * total), None
        )
        if heavy is None or heavy.tag in ("table", "tbody", "tr", "ul", "ol", "p", "pre"):
            return root
        root = heavy


def _runs(element: Element) -> list[str]:
    """The stretches of inline text directly in a block."""
    runs: list[str] = []
    parts: list[str] = []
    waiting: list[Element | str] = list(reversed(element.children))
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            parts.append(node)
        elif node.is_block:
            runs.append("".join(parts))
            parts = []
        elif node.tag == "br":
            parts.append("\n")
        else:
            waiting += reversed(node.children)
    runs.append("".join(parts))
    return [run for run in runs if run.strip()]


def without_asides(body: Element) -> Element:
    """A copy of a page's tree less its navigation, forms and footers."""
    copy = Element(body.tag, body.attrs, holds_block=body.holds_block)
    waiting = [(body, copy)]
    while waiting:
        source, target = waiting.pop()
        for child in source.children:
            if isinstance(child, str):
                target.children.append(child)
            elif child.tag not in _ASIDE:
                twin = Element(child.tag, child.attrs, parent=target, holds_block=child.holds_block)
                target.children.append(twin)
                waiting.append((child, twin))
    return copy


def is_too_little(kept: str, page_text: str, share: float = TOO_LITTLE) -> bool:
    """Say whether an extraction missed the content: less than `share` of a page that has text."""
    have, whole = count_words(kept), count_words(page_text)
    return whole > have and (have < MIN_WORDS or have < share * whole) and have < 0.9 * whole


def count_words(text: str) -> int:
    """The number of words in a text."""
    return len(_words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
