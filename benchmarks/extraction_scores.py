"""How well an extraction's text and Markdown structure agree with what a page's content is known to be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

SHINGLE = 4

_LINK = re.compile(r"!?\[((?:\\.|[^\[\]\\])*)\]\((?:<[^>]*>|(?:\\.|[^()\s\\]|\([^()\s]*\))*)(?:\s+\"[^\"]*\")?\)")
_EMPHASIS = re.compile(r"(?<!\\)(?:\*\*|__|~~|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|(?<!\w)_(?=\S)|(?<=\S)_(?!\w))")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_BREAK = re.compile(r"<br ?/?>")
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^[ >]*(?:(?:[-*+]|\d{1,9}[.)]) +)*#{1,6} +(.*?)[ #]*$", re.M)
_ITEM = re.compile(r"^[ >]*(?:[-*+]|\d{1,9}[.)]) +(.*)$", re.M)
_FENCE = re.compile(r"^[ >]*(`{3,}|~{3,})[^\n]*\n(.*?)^[ >]*\1", re.M | re.S)
_PIPE = re.compile(r"(?<!\\)\|")
_SEPARATOR = re.compile(r"[ |:-]*-[ |:-]*")


def strip_markdown(text: str) -> str:
    """Markdown without link targets, emphasis marks and backslash escapes."""
    for _ in range(2):  # an image within a link
        text = _LINK.sub(lambda match: match[1], text)
    return _ESCAPE.sub(r"\1", _BREAK.sub(" ", _EMPHASIS.sub("", text)))


def words_of(text: str) -> list[str]:
    """The words of a text as WCXB counts them: `\\w+`, in lower case."""
    return _WORD.findall(text.lower())


def f1(precision: float, recall: float) -> float:
    """The harmonic mean."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def score_words(found: str, gold: str) -> float:
    """WCXB's F1 of one page: the multisets of the words."""
    have, want = Counter(words_of(found)), Counter(words_of(gold))
    if not have or not want:
        return float(not have and not want)
    both = (have & want).total()
    return f1(both / have.total(), both / want.total())


def score_shingles(found: str, gold: str) -> tuple[float, float]:
    """AEB's precision and recall of one page: the multisets of sequences of four words."""
    have, want = _shingles(found), _shingles(gold)
    both = (have & want).total()
    return (both / have.total() if have else 0.0), (both / want.total() if want else 1.0)


def _shingles(text: str) -> Counter[tuple[str, ...]]:
    # As AEB's own script cuts them: at white space and punctuation, the case kept.
    words = _WORD.findall(text)
    length = min(SHINGLE, len(words))
    return Counter(tuple(words[i : i + length]) for i in range(len(words) - length + 1)) if words else Counter()


def score_structure(html: str, gold: str, markdown: str) -> dict[str, tuple[int, int]]:
    """(kept, expected) by kind of structure.

    Expected are a page's headings, links, list items, code blocks and data tables whose text stands in the gold;
    kept is what the Markdown has of them, each as what it was. `tables valid`: of the tables written, those that
    are valid (a head, one separator row below it, every row as wide).
    """
    import turbohtml

    words = words_of(gold)
    body: Any = turbohtml.parse(html, positions=False).find("body")
    if body is None:
        return {}
    known = f" {' '.join(words)} "

    def stands(text: str, least: int) -> str:
        key = " ".join(words_of(text))
        return key if key.count(" ") + 1 >= least and key and f" {key} " in known else ""

    tables = written_tables(markdown)
    cells = [{" ".join(words_of(cell)) for row in rows for cell in row} for rows, valid in tables if valid]
    fenced = [" ".join(words_of(match[2])) for match in _FENCE.finditer(markdown)]
    plain = _FENCE.sub("", markdown)
    headings = [_key(match[1]) for match in _HEADING.finditer(plain)]
    items = [_key(match[1]) for match in _ITEM.finditer(plain)]
    links = [_key(match[1]) for match in _LINK.finditer(plain) if not match[0].startswith("!")]
    code = [key for node in body.find_all("pre") if (key := stands(node.text, 3))]
    return {
        "headings": _count((stands(node.text, 1) for tag in _HEADINGS for node in body.find_all(tag)), headings),
        "links": _count((_link_key(node, stands) for node in body.find_all("a")), links),
        "lists": _count((_item_key(node, stands) for node in body.find_all("li")), items, begin=True),
        "code": (sum(any(key in block for block in fenced) for key in code), len(code)),
        "tables": _count_tables(body, stands, cells),
        "tables valid": (sum(valid for _, valid in tables), len(tables)),
    }


_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def _key(markdown: str) -> str:
    return " ".join(words_of(strip_markdown(markdown)))


def _count(expected: Iterable[str], found: Sequence[str], *, begin: bool = False) -> tuple[int, int]:
    want = Counter(key for key in expected if key)
    if not begin:
        return (want & Counter(found)).total(), want.total()
    # An item's first line is the beginning of its text.
    have = Counter(key[:20] for key in found)
    return (Counter(key[:20] for key in want.elements()) & have).total(), want.total()


def _link_key(node: Any, stands: Any) -> str:
    """A link is content when its sentence is: one word in a menu proves nothing."""
    href = (node.attrs.get("href") or "").strip()
    if not href or href.startswith(("#", "javascript:")):
        return ""
    holder = node
    while holder.parent is not None and getattr(holder.parent, "tag", None) in _AROUND_A_LINK:
        holder = holder.parent
    around = holder.parent if holder.parent is not None else holder
    if not stands(around.text, 4):
        return ""
    for tag in (*_HEADINGS, "p", "div"):  # a link around blocks is one of its heading, or of its first line
        if (first := node.find(tag)) is not None and first.text.strip():
            return stands(first.text, 1)  # type: ignore[no-any-return]
    return stands(node.text, 1)  # type: ignore[no-any-return]


_AROUND_A_LINK = frozenset({"a", "abbr", "b", "cite", "em", "font", "i", "small", "span", "strong", "sup", "u"})


def _item_key(node: Any, stands: Any) -> str:
    text = node.text
    for inner in ("ul", "ol"):
        if (below := node.find(inner)) is not None:
            text = text.replace(below.text, "")
    return stands(text, 2)  # type: ignore[no-any-return]


def _count_tables(body: Any, stands: Any, written: list[set[str]]) -> tuple[int, int]:
    expected = kept = 0
    for table in body.find_all("table"):
        rows = table.find_all("tr")
        if table.find("table") is not None or table.find("pre") is not None or len(rows) < 2:
            continue
        if max(len(row.find_all("td")) + len(row.find_all("th")) for row in rows) < 2:
            continue
        keys = [" ".join(words_of(cell.text)) for tag in ("td", "th") for cell in table.find_all(tag)]
        keys = [key for key in keys if key]
        if not keys or sum(bool(stands(key, 1)) for key in keys) < 0.8 * len(keys):
            continue
        expected += 1
        kept += any(sum(key in cells for key in keys) >= 0.7 * len(keys) for cells in written)
    return kept, expected


def written_tables(markdown: str) -> list[tuple[list[list[str]], bool]]:
    """The tables of a Markdown text as rows of cells, and whether each is valid."""
    plain = _FENCE.sub("\n", markdown)
    tables, lines = [], []
    for line in [*plain.split("\n"), ""]:
        bare = re.sub(r"^[ >]*(?:- |\d+\. )?(?=\|)", "", line).strip()
        if bare.startswith("|") and bare.count("|") > 1:
            lines.append(bare)
        elif lines:
            tables.append(_read_table(lines))
            lines = []
    return tables


def _read_table(lines: list[str]) -> tuple[list[list[str]], bool]:
    rows = [[_key(cell) for cell in _PIPE.split(line.strip().strip("|"))] for line in lines]
    widths = {len(_PIPE.findall(line)) for line in lines}
    separators = [index for index, line in enumerate(lines) if _SEPARATOR.fullmatch(line)]
    return rows, separators == [1] and len(widths) == 1
