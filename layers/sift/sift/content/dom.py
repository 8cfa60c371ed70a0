"""A page as a light tree of our own: bounded in depth and attributes, without what nobody reads."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any
from urllib.parse import urljoin, urlsplit

from sift.content.metadata import read_head

# Browsers and turbohtml stop at 512 levels, libxml2 (under trafilatura) loses what lies below 256.
MAX_DEPTH = 200
MAX_ATTRIBUTES = 256
# Elements and texts of a page; what comes after them is left out. The largest of 520 real pages has 20,000.
MAX_NODES = 400_000
# What all cells of a page together may cover by their spans: a few thousand cells can ask for billions.
MAX_SPANNED = 50_000

_DROPPED = frozenset(
    "script style template svg math iframe object embed canvas noscript "  # noqa: SIM905 - reads as a list of names
    "audio video map datalist select option head".split()
)
# What anything here looks at; the rest is left behind, in a page of frameworks most of it.
_READ = frozenset(
    "alt class colspan data-line-number href id itemprop rel role rowspan src start".split()  # noqa: SIM905
)
_BLOCKS = frozenset(
    "html body address article aside blockquote caption center dd details dialog dir div dl dt fieldset "  # noqa: SIM905
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p pre search "
    "section summary table tbody td tfoot th thead tr ul".split()
)
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,60}")
_PRODUCT = re.compile(
    r'"@type"\s{0,9}:\s{0,9}\[?\s{0,9}"(?:https?://schema\.org/)?(?:Product|ProductGroup|Offer|AggregateOffer)"'
)
# What schema.org says, in JSON-LD or attributes, of a page that is an article and of one that is none in particular.
_ARTICLE = re.compile(
    r"schema\.org/\w{0,30}(?:Article|Posting|Recipe|HowTo)\b"
    r'|"@type"\s{0,9}:\s{0,9}[^\]}{:]{0,80}(?:Article|Posting|Recipe|HowTo)"'
)
_SOME_PAGE = re.compile(r'"@type"\s{0,9}:\s{0,9}\[?\s{0,9}"(?:https?://schema\.org/)?\w{0,30}Page"')
# A link that `urljoin` leaves as it is (with an origin) or puts behind one: no dots to resolve, nothing empty to drop.
_PLAIN_LINK = re.compile(
    r"(https?://[A-Za-z0-9.-]+)?(?:/(?![/.])[A-Za-z0-9_~%+,.-]*)+(?:\?[A-Za-z0-9_~%+,./=&-]+)?(?:#[A-Za-z0-9_~%+,./=&-]+)?"
)
_SPACE = re.compile(r"[ \t\r\n\f\u00a0]+")
_OTHER_SPACE = re.compile(r"[\t\r\n\f\u00a0]")


class Element:
    """One element; a child that is a `str` is text.

    `is_block`: it starts a line of its own; `holds_block` tells of a block anywhere below; `layout` is for the caller:
    a table that shows no data.
    """

    __slots__ = ("attrs", "children", "holds_block", "is_block", "layout", "parent", "tag")

    def __init__(
        self,
        tag: str,
        attrs: dict[str, str],
        children: list[Element | str] | None = None,
        parent: Element | None = None,
    ) -> None:
        self.tag = tag
        self.attrs = attrs
        self.children: list[Element | str] = [] if children is None else children
        self.parent = parent
        self.is_block = tag in _BLOCKS
        self.holds_block = False
        self.layout = False

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in document order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            if element.children:
                waiting += [child for child in reversed(element.children) if child.__class__ is Element]

    def text(self, *, lines: bool = False) -> str:
        """All text below it as it stands, `br` as a line end; with `lines`, blocks on lines and cells after tabs."""
        parts: list[str] = []
        waiting: list[Element | str] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                parts.append(node)
            elif node.tag == "br":
                parts.append("\n")
            else:
                if lines and node.tag in ("td", "th"):
                    parts.append("\t")
                elif lines and node.is_block:
                    parts.append("\n")
                    waiting.append("\n")
                waiting += reversed(node.children)
        return "".join(parts)

    def find(self, *tags: str) -> Element | None:
        """The first element below it with one of these tags."""
        return next((element for element in self.walk() if element.tag in tags and element is not self), None)


@dataclass(frozen=True)
class Page:
    """A parsed page: its body, what its head says, and whether it had to be flattened to fit the bounds.

    `elements`: the body and all below it, in document order, as they were read. `nodes`: how many elements and texts
    of it were read; `MAX_NODES` where the rest is missing.
    `head`: what it says of itself, see `sift.content.metadata`. `kind`: article or product if it says so, else "".
    `from_noscript`: its text is the one for readers without scripts.
    """

    elements: list[Element]
    base: str
    title: str
    language: str
    canonical: str
    kind: str
    flattened: bool
    from_noscript: bool
    head: dict[str, str] = field(default_factory=dict)
    nodes: int = 0

    @property
    def body(self) -> Element:
        """What the page shows."""
        return self.elements[0]


def parse_page(html: str, url: str) -> Page:
    """Build the tree of a page, in time linear in its size. `url` is its address, for relative links."""
    import turbohtml

    document = turbohtml.parse(html, positions=False)
    base_tag = document.find("base")
    base = urljoin_safe(url, _attribute(base_tag, "href")) or url
    root = document.find("html")
    canonical = next(
        (_attribute(link, "href") for link in document.find_all("link") if "canonical" in _attribute(link, "rel")), ""
    )
    title = document.find("title")
    source = document.find("body") or root
    elements, flattened, nodes = _build(source, _DROPPED)
    body = elements[0]
    unscripted = sum(len(node.text) for node in document.find_all("noscript"))
    from_noscript = unscripted > 0 and unscripted > len(collapse(body.text()))
    if from_noscript:
        # A page that scripts build may carry its text for readers without them.
        elements, flattened, nodes = _build(source, _DROPPED - {"noscript"})
    return Page(
        elements=elements,
        base=base,
        title=_SPACE.sub(" ", title.text if title is not None else "").strip()[:1000],
        language=_attribute(root, "lang")[:35],
        canonical=(urljoin_safe(base, canonical) if canonical else "")[:2000],
        kind=_kind(document, html),
        flattened=flattened,
        from_noscript=from_noscript,
        head=read_head(document, base),
        nodes=nodes,
    )


def _kind(document: Any, html: str) -> str:
    """What a page is by its Open Graph type and by schema.org; only what its extraction turns on."""
    types = {
        _attribute(meta, "content").lower()
        for meta in document.find_all("meta")
        if _attribute(meta, "property") == "og:type"
    }
    if any(name.startswith(("product", "og:product")) for name in types) or _PRODUCT.search(html):
        return "product"
    if "article" not in types:
        return ""
    # Some write this on whatever page: one that is only some page to schema.org and has no day is none.
    dated = any(_attribute(meta, "property") == "article:published_time" for meta in document.find_all("meta"))
    return "article" if dated or _ARTICLE.search(html) or not _SOME_PAGE.search(html) else ""


def _attribute(node: Any, name: str) -> str:
    value = node.attrs.get(name) if node is not None else None
    return (" ".join(value) if isinstance(value, list) else value or "").strip()


def _build(source: Any, dropped: frozenset[str]) -> tuple[list[Element], bool, int]:
    """The elements of the tree, its root first, whether it was flattened, and how many nodes went into it."""
    body = Element("body", {})
    elements = [body]
    if source is None:
        return elements, False, 0
    import turbohtml

    texts = (turbohtml.Text, turbohtml.CData)
    flattened = is_cut = False
    nodes = spanned = 0
    # Each element that is open, with what is left of its children. One below the depth limit goes, and what it holds
    # is hung up at the limit.
    above: list[tuple[Element, Iterator[Any], int]] = []
    parent, rest, depth = body, iter(source.children), 1
    while not is_cut:
        for node in rest:
            if nodes == MAX_NODES:
                is_cut = True
                break
            nodes += 1
            if type(node) in texts:
                parent.children.append(node.data)
                continue
            tag = getattr(node, "tag", None)
            if tag is None or tag in dropped:
                continue
            raw = node.attrs
            attrs: dict[str, str] = {}
            if raw:
                flattened = flattened or len(raw) > MAX_ATTRIBUTES
                for name in raw:
                    if name in _READ:
                        value = raw[name]
                        attrs[name] = " ".join(value) if isinstance(value, list) else value or ""
                if "colspan" in attrs or "rowspan" in attrs:
                    spanned += _span(attrs.get("colspan", "")) * _span(attrs.get("rowspan", ""))
            below = node.children
            if depth > MAX_DEPTH:
                flattened = True
                if below:
                    parent.children.append(" ")
                    above.append((parent, rest, depth))
                    rest = iter(below)
                    break
            element = Element(tag, attrs, None, parent)
            elements.append(element)
            parent.children.append(element)
            if element.is_block:
                higher: Element | None = parent
                while higher is not None and not higher.holds_block:
                    higher.holds_block, higher = True, higher.parent
            if below:
                above.append((parent, rest, depth))
                parent, rest, depth = element, iter(below), depth + 1
                break
        else:
            if not above:
                break
            parent, rest, depth = above.pop()
    if spanned > MAX_SPANNED:
        for element in elements:
            for name in ("colspan", "rowspan"):
                element.attrs.pop(name, None)
    return elements, bool(flattened or is_cut or spanned > MAX_SPANNED), nodes


def _span(value: str) -> int:
    """A span as browsers read it: 1 without a number, never over 65,534."""
    return min(max(int(value), 1), 65_534) if value.isdecimal() and len(value) < 9 else 1


class _Closer(str):
    """An end tag waiting among the text."""

    __slots__ = ()


def serialize(page: Page) -> str:
    """The page as HTML again, within the bounds: what a weaker parser gets of a page that broke them."""
    parts = [f"<!doctype html><html><head><title>{escape(page.title)}</title></head>"]
    waiting: list[Element | str] = [page.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            parts.append(node if isinstance(node, _Closer) else escape(node, quote=False))
            continue
        attrs = "".join(f' {name}="{escape(value)}"' for name, value in node.attrs.items() if _NAME.fullmatch(name))
        parts.append(f"<{node.tag}{attrs}>")
        if node.tag not in _VOID:
            waiting.append(_Closer(f"</{node.tag}>"))
            waiting += reversed(node.children)
    return "".join(parts)


def collapse(text: str) -> str:
    """Runs of white space as one space."""
    # A replacement of each single space by itself would take most of the time.
    return _SPACE.sub(" ", text) if "  " in text or _OTHER_SPACE.search(text) else text


def urljoin_safe(base: str, link: str) -> str:
    """`urljoin`, with "" for a link that is no URL at all."""
    # Most links need no joining, or only an origin; taking both addresses apart costs more than all else of a link.
    if (plain := _PLAIN_LINK.fullmatch(link)) is not None:
        if plain[1]:
            return link
        if origin := _origin(base):
            return origin + link
    try:
        return urljoin(base, link)
    except ValueError:
        return ""


@functools.lru_cache(maxsize=8)
def _origin(url: str) -> str:
    """Scheme and host of an address on the web, else ""."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") and parts.netloc else ""
