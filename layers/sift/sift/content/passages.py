"""A text as passages with their headings and lines, and those of them that answer a question best."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sift.content.words import read_question, read_words
from sift.errors import TargetFailed

MAX_INPUT_CHARS = 5_000_000

#: A passage ends at the first gap after so many characters, and at any line once it is far longer.
PASSAGE_CHARS = 500
LONGEST_CHARS = 1_500
#: A question is answered with so many passages, and with so much of them and their neighbours.
MOST_PASSAGES = 5
MOST_CHARS = 12_000
# Passages with less than this share of the best one's score have little to say.
_WORTH = 0.25
# Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009): 1.2 < k1 < 2, 0.5 < b < 0.8.
_K1, _B = 1.2, 0.75

_HEADING = re.compile(r"(#{1,6})\s+\S")
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_PAGE_MARK = re.compile(r"<!-- page ([0-9]+) -->$")
# What `show` writes above passages, in any spelling that a reader could take for it.
_PLACE_MARK = re.compile(r"^([ \t]*)(?=<!--[ \t]*(?:page|lines?)[ \t]+\d)", re.M | re.I)
_SENTENCE = re.compile(r"(?<=[.!?\u2026])\s+|(?<=[\u3002\uff01\uff1f\u0964])\s*")


@dataclass(frozen=True)
class Passage:
    """A piece of a text: its first and last line from 1, the headings it stands under, and its page, if paged."""

    first: int
    last: int
    headings: tuple[str, ...]
    text: str
    page: int | None = None


def split_passages(text: str, *, markdown: bool = True, paged: bool = False) -> list[Passage]:
    """The passages of a text in order; together they hold every line but headings, page marks and empty ones.

    `markdown`: lines that start with # are headings, and code between fences has none. `paged`: it has page marks.
    """
    found: list[Passage] = []
    lines: list[str] = []
    headings: list[tuple[int, str]] = []
    page, first, fence = None, 1, ""

    def flush() -> None:
        body = "\n".join(lines).strip("\n")
        written = [first + place for place, line in enumerate(lines) if line.strip()]
        if written:
            found.append(Passage(written[0], written[-1], tuple(line for _, line in headings), body, page))
        lines.clear()

    size = 0
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        mark = _PAGE_MARK.match(line) if paged else None
        heading = _HEADING.match(line) if markdown and not fence else None
        gap = not line.strip() and not fence and size >= PASSAGE_CHARS
        if mark or heading or gap or size >= LONGEST_CHARS or (not markdown and size >= PASSAGE_CHARS):
            flush()
            first, size = number, 0
        if mark or heading:
            first = number + 1
            page = int(mark[1]) if mark else page
            if heading:
                level = len(heading[1])
                headings = [*((depth, above) for depth, above in headings if depth < level), (level, line.strip())]
            continue
        if fenced := (_FENCE.match(line) if markdown else None):
            fence = "" if fence and fenced[1].startswith(fence) else fence or fenced[1]
        lines.append(line)
        size += len(line) + 1
    flush()
    return [part for passage in found for part in _split_long(passage)]


def rank(passages: Sequence[Passage], question: str) -> list[int]:
    """Places of the passages that share words with the question, the best first, by BM25.

    A word that more than half of many passages hold tells nothing, and alone makes no passage an answer.
    """
    asked = read_question(question)
    counts = [Counter(read_words(" ".join(passage.headings) + " " + passage.text)) for passage in passages]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    held = {word: sum(word in count for count in counts) for word in asked}
    telling = {word for word in asked if held[word] and (held[word] * 2 <= len(counts) or len(counts) < 4)}
    rarity = {word: math.log(1 + (len(counts) - held[word] + 0.5) / (held[word] + 0.5)) for word in asked}
    scores: dict[int, float] = {}
    for place, count in enumerate(counts):
        if telling.isdisjoint(count):
            continue
        norm = _K1 * (1 - _B + _B * lengths[place] / mean)
        scores[place] = sum(rarity[word] * count[word] * (_K1 + 1) / (count[word] + norm) for word in asked)
    best = max(scores.values(), default=0.0)
    ranked = sorted(scores, key=lambda place: (-scores[place], place))
    return [place for place in ranked if scores[place] >= _WORTH * best]


def choose(passages: Sequence[Passage], ranked: Sequence[int], context: int, chars: int) -> list[list[Passage]]:
    """The best passages, each with `context` neighbours on either side; those that touch are one group.

    Groups are in the order of their best passage. The best always fits; the next are left out that would bring all
    over `chars` characters.
    """
    chosen: set[int] = set()
    size = 0
    for place in ranked[:MOST_PASSAGES]:
        around = set(range(max(0, place - context), min(len(passages), place + context + 1))) - chosen
        more = sum(len(passages[other].text) for other in around)
        if chosen and size + more > chars:
            around, more = {place} - chosen, len(passages[place].text)
            if size + more > chars:
                continue
        chosen |= around
        size += more
    groups: list[list[int]] = []
    for place in sorted(chosen):
        if groups and context and place == groups[-1][-1] + 1:
            groups[-1].append(place)
        else:
            groups.append([place])
    order = {place: at for at, place in enumerate(ranked)}
    groups.sort(key=lambda group: min(order.get(place, len(order)) for place in group))
    return [[passages[place] for place in group] for group in groups]


def show(group: Sequence[Passage]) -> str:
    """Passages in a row as Markdown: where they stand, the headings they stand under, and their text.

    A line of the text that looks like such a place has a backslash before it.
    """
    page = f"page {group[0].page}, " if group[0].page is not None else ""
    first, last = group[0].first, group[-1].last
    parts = [f"<!-- {page}{f'line {first}' if first == last else f'lines {first}-{last}'} -->"]
    shown: tuple[str, ...] = ()
    for passage in group:
        pairs = zip(shown, passage.headings, strict=False)
        known = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        parts += [*passage.headings[known:], _PLACE_MARK.sub(r"\1\\", passage.text)]
        shown = passage.headings
    return "\n\n".join(parts)


def answer(passages: Sequence[Passage], question: str, context: int) -> tuple[str, list[dict[str, Any]], int]:
    """The passages that answer a question as Markdown, the best first; where each stands; how many share its words.

    Where one stands: `lines` (first and last, from 1), `headings`, and `page` in a paged document.
    Raises TargetFailed filter_limit, no_match.
    """
    if sum(len(passage.text) for passage in passages) > MAX_INPUT_CHARS:
        hint = "Narrow it first, with `pages`, `grep` or `jq`."
        raise TargetFailed("filter_limit", f"A question is asked of at most {MAX_INPUT_CHARS} characters.", hint)
    ranked = rank(passages, question)
    if not ranked:
        raise TargetFailed(
            "no_match",
            "No passage shares a telling word with the question.",
            "Ask in the document's language and words, or read it without `question`.",
        )
    groups = choose(passages, ranked, context, MOST_CHARS)
    places: list[dict[str, Any]] = [
        {"lines": [group[0].first, group[-1].last], "headings": list(group[0].headings)}
        | ({} if group[0].page is None else {"page": group[0].page})
        for group in groups
    ]
    return "\n\n".join(show(group) for group in groups) + "\n", places, len(ranked)


def _split_long(passage: Passage) -> Iterator[Passage]:
    """A passage whose lines are far too long (a page on one line) in pieces, at sentences where it has any."""
    if len(passage.text) <= 2 * LONGEST_CHARS:
        yield passage
        return
    piece = ""
    for sentence in _SENTENCE.split(passage.text):
        for start in range(0, len(sentence), LONGEST_CHARS):
            part = sentence[start : start + LONGEST_CHARS]
            if piece and len(piece) + len(part) > LONGEST_CHARS:
                yield Passage(passage.first, passage.last, passage.headings, piece, passage.page)
                piece = ""
            piece += (" " if piece and not start else "") + part
    if piece.strip():
        yield Passage(passage.first, passage.last, passage.headings, piece, passage.page)
