"""Pages made to break whoever reads them, each of them made here and none of them stored."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

HTML = "text/html; charset=utf-8"
_WORDS = "the harbour authority published a statement on the pier this morning "


def _page(body: bytes, head: bytes = b"") -> bytes:
    return b"<!doctype html><html><head><title>T</title>" + head + b"</head><body>" + body + b"</body></html>"


def _nested(tags: str, depth: int) -> bytes:
    names = tags.split()
    inner = "".join(f"<{names[level % len(names)]}>" for level in range(depth))
    return _page(inner.encode() + _WORDS.encode() * 20)


def _attributes() -> bytes:
    return _page(b"<p " + b" ".join(b"a%d=v%d" % (number, number) for number in range(100_000)) + b">text of it</p>")


def _entities() -> bytes:
    """Entities of entities, ten to the power of nine times one word."""
    names = "abcdefghij"
    lines = [f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise(names)]
    return f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "lol">{"".join(lines)}]><r>&{names[-1]};</r>'.encode()


def _spans() -> bytes:
    row = b"<tr>" + b"<td colspan=65534 rowspan=65534>x" * 50
    return _page(b"<table>" + row * 50 + b"</table>" + _WORDS.encode() * 20)


def _cells() -> bytes:
    return _page(b"<table>" + (b"<tr>" + b"<td>7" * 1_000) * 900 + b"</table>")


def _unique_words() -> bytes:
    return _page(b"<article><p>" + b" ".join(b"w%x" % number for number in range(650_000)) + b"</p></article>")


def _utf16() -> bytes:
    controls = "".join(chr(number) for number in range(32)) + "\ud800\udfff\ufffe\uffff"
    text = f"<html><body><p>{_WORDS}</p>" + (controls + "<p>x\x00y</p>") * 20_000
    return b"\xff\xfe" + text.encode("utf-16-le", "surrogatepass")


def _formatting() -> bytes:
    """Formatting that is never closed: each block opens all of it again."""
    return _page(b"".join(b"<p><b class=c%d><i><u><s>x" % number for number in range(60_000)))


#: Name, content type, and what makes the page.
PAGES: tuple[tuple[str, str, Callable[[], bytes]], ...] = (
    ("100,000 nested tags", HTML, lambda: _nested("div", 100_000)),
    ("100,000 attributes on a tag", HTML, _attributes),
    ("1,000,000 tiny tags", HTML, lambda: _page(b"<p>x" * 1_000_000)),
    ("one text of 9 MB", HTML, lambda: _page(b"<p>" + _WORDS.encode() * 130_000)),
    ("650,000 different words", HTML, _unique_words),
    ("9 MB without a space", HTML, lambda: _page(b"<p>" + b"x" * 9_000_000)),
    ("a comment that never ends", HTML, lambda: _page(b"<p>before</p><!--" + b"<p>x<!-- -" * 500_000)),
    ("entities of entities", "application/xhtml+xml", _entities),
    ("entities of entities, as XML", "application/xml", _entities),
    ("1,000,000 entities", HTML, lambda: _page(b"<p>" + b"&lt;&#x1f600;&bogus" * 300_000)),
    ("spans of 65,534", HTML, _spans),
    ("900,000 cells", HTML, _cells),
    ("20,000 nested lists", HTML, lambda: _nested("ul li", 40_000)),
    ("nested formatting", HTML, lambda: _nested("b i u em strong", 100_000)),
    ("formatting that is never closed", HTML, _formatting),
    ("nested tables", HTML, lambda: _nested("table tr td", 30_000)),
    ("text between rows", HTML, lambda: _page(b"<table>" + b"<tr>x<b>y" * 200_000)),
    ("5 MB of links", HTML, lambda: _page(b"".join(b"<a href=/p/%d>link %d</a> " % (n, n) for n in range(180_000)))),
    ("5 MB of open links", HTML, lambda: _page(b"<a href=x>" * 500_000)),
    ("200,000 headings", HTML, lambda: _page(b"<h2>head</h2><h3>of</h3>" * 100_000 + b"<p>text</p>")),
    ("a tag that never ends", HTML, lambda: _page(b"<p>before</p><a " + b'href="' * 900_000)),
    ("metas without end", HTML, lambda: _page(b"<p>x", b"<meta name=date content=2024-99-99 " * 140_000)),
    ("controls and zeros in UTF-16", "text/html", _utf16),
    ("script that is no script", HTML, lambda: _page(b"<script>" + b"<!--<script>" * 400_000)),
    ("dates without end", HTML, lambda: _page(b"<p>12/31/2024 and 2024-02-30, 5 Mai 24 " * 120_000)),
    ("JSON-LD that is deep", HTML, lambda: _page(b"<p>x", b"<script type=application/ld+json>" + b'[{"a":' * 400_000)),
    ("deep JSON", "application/json", lambda: b"[" * 5_000_000),
    ("a number of 9 MB", "application/json", lambda: b"9" * 9_000_000),
    ("deep XML", "application/xml", lambda: b"<?xml version='1.0'?>" + b"<a>" * 2_000_000),
    ("zeros", "text/html", lambda: b"<html>" + bytes(9_000_000)),
)
