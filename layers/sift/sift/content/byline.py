"""Title, author and day of publication as the body of a page shows them, for where its head is silent or longwinded."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from sift.content.dom import Element, collapse

MAX_NAME = 60
MAX_BELOW = 50

_AUTHOR_NAME = re.compile(r"(?:^|[\s_-])(?:author|byline|writer)[\s_-]{0,2}(?:name|link|title)?s?(?:$|\s)", re.I)
_AUTHOR_AREA = re.compile(r"(?:^|[\s_-])(?:author|byline|byl|writer)s?(?:$|[\s_-])", re.I)
_BY = re.compile(
    r"^(?:(?:(?:written|posted|published|reviewed|story|article|words)\s)?by[:\s]\s?|(?:author|von|par|por|di|door)[:\s]\s?)",
    re.I,
)
_AFTER_NAME = re.compile(
    r"\s[|·•—\u2013-]\s|\s?\||,?\s(?:on\s)?(?:updated|published|posted|last|reviewed)\b|,?\s(?:\w+\s)?\d", re.I
)
_NO_NAME = re.compile(
    r"\d|http|@|^(?:about|all|articles?|authors?|comments?|follow|more|posts?|read|see|share|view)\b", re.I
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SITE = re.compile(r"\s[|\u2013—·»-]\s")
_EDGES = " ,|·•-\u2013—:"


def find_title(elements: Sequence[Element], stated: str) -> str:
    """The one `h1`, else what the head states less the name of the site, or ""."""
    headings = [element for element in elements if element.tag == "h1"]
    if len(headings) == 1 and (title := collapse(headings[0].text()).strip()):
        return title
    return _SITE.split(stated, 1)[0].strip()


def find_author(elements: Sequence[Element]) -> str:
    """The first name that `rel`, `itemprop`, a class or an address marks as the author's, or ""."""
    best, rank = "", 4
    for element in elements:
        if not element.attrs:
            continue
        mark = _rank(element)
        if mark < rank and (name := _read_name(element)):
            best, rank = name, mark
            if rank == 0:
                break
    return best


def _rank(element: Element) -> int:
    attrs = element.attrs
    said = " ".join(attrs.values()).lower()
    if not ("author" in said or "byl" in said or "writer" in said):
        return 4
    if "author" in attrs.get("rel", "").split():
        return 0
    if "author" in attrs.get("itemprop", "").split():
        return 1
    names = attrs.get("class", "")
    if _AUTHOR_NAME.search(names) or "/author/" in attrs.get("href", ""):
        return 2
    return 3 if _AUTHOR_AREA.search(f"{names} {attrs.get('id', '')}") else 4


def _read_name(element: Element) -> str:
    """The text of an element if it reads like a name of two to eight words, or ""."""
    text = collapse(_text_of_few(element)).strip(_EDGES)
    name = _AFTER_NAME.split(_BY.sub("", text), 1)[0].strip(_EDGES)
    return name if 2 <= len(name.split()) <= 8 and len(name) <= MAX_NAME and not _NO_NAME.search(name) else ""


def _text_of_few(element: Element) -> str:
    """The text of an element of at most `MAX_BELOW` elements: one that holds more is no name."""
    few = sum(1 for _ in itertools.islice(element.walk(), MAX_BELOW + 1)) <= MAX_BELOW
    return element.text()[:500].replace("\n", " ") if few else ""


def find_day(stated: str) -> str:
    """The day that a stated time begins with, as YYYY-MM-DD, or "" when it is written in another way."""
    match = _DAY.match(stated)
    return match[0] if match else ""
