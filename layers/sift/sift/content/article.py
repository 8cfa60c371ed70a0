"""The main content of a page: what trafilatura kept, or the whole of `main` where that is more than an article."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from sift.content import selection, surplus
from sift.content.allocator import LARGE_PAGE, give_back
from sift.content.dom import Page
from sift.content.hastening import hasten
from sift.content.markdown import Renderer

# A page that calls itself neither an article nor a product is given whole (its `main`, else its body less menus)
# when trafilatura kept less than this share of it: a list of entries, a thread, a page made of sections.
SHARE_OF_MAIN, SHARE_OF_BODY = 0.5, 0.1
# So is any page of which trafilatura found next to nothing.
MIN_WORDS = 20
# What trafilatura keeps without its fallbacks is taken where it is neither very little of the page nor nearly all:
# then it is the more exact, and a third cheaper.
QUICK_WORDS, QUICK_LEAST, QUICK_MOST = 100, 0.3, 0.95
# Of what was kept, this share must stand in the page's blocks, or it comes from structured data.
FOUND_SHARE = 0.5

_DOCTYPE = re.compile(r"<\s?!\s?doctype[^>]*>", re.I)
_CLOSED_ROOT = re.compile(r"(<html[^>]*?)\s*/>", re.I)
_STRIPPED = ("script", "style", "svg", "template", "link", "nav", "footer", "button", "dialog", "select")


@dataclass(frozen=True)
class Article:
    """Content as Markdown; `whole`: no main content was found and this is all of the page."""

    content: str
    whole: bool = False


def extract_article(page: Page, source: Source) -> Article:
    """The main content of a page. The page's tree is used up."""
    runs = selection.read_runs(page.body)
    region, is_main = selection.find_region(runs)
    there = selection.count_words(region)
    kept = source.keep_text(quick=True)
    selection.keep_known(runs, kept)
    if is_main and selection.count_kept(region) < selection.INSIDE_SHARE * selection.count_kept(runs):
        region, is_main = selection.find_outside(runs), False  # an empty frame, whatever its name
        there = selection.count_words(region)
    words, least = selection.count_kept(region), QUICK_LEAST * there
    given_whole = is_main and not page.kind and words < least  # whatever more is found
    if not given_whole and (words < max(QUICK_WORDS, least) or (words > QUICK_MOST * there and not is_main)):
        kept = source.keep_text(quick=False)
        selection.keep_known(runs, kept)
    source.close()
    wanted, found = selection.count_text(kept), selection.count_kept(runs)
    if wanted > there and found < FOUND_SHARE * wanted:
        return Article("\n\n".join(line for line in kept.splitlines() if line.strip()) + "\n")
    share = selection.count_kept(region) / max(1, there)
    little = not page.kind and share < (SHARE_OF_MAIN if is_main else SHARE_OF_BODY)
    whole = little or (found < MIN_WORDS and found < 0.9 * there)
    if not whole:
        selection.complete(page.elements, runs, region, gapless=not page.kind)
        left = selection.count_kept(runs)  # less than half, and next to nothing: it stood in several places
        whole = not left or left < min(MIN_WORDS, 0.9 * there, 0.5 * found)
    if whole:
        selection.keep_all(runs, region)
    surplus.drop_named(page.elements, runs, reviews=page.kind == "product")
    surplus.drop_before_title(runs)
    surplus.drop_repeated(runs, product=page.kind == "product")
    selection.clear_others(runs)
    content = Renderer(page.base).render(selection.find_holder(page.elements, runs))
    return Article(content, whole=whole and not is_main)


class Source:
    """A page's HTML for those who parse it in their own way: trafilatura for its content, htmldate for its day."""

    def __init__(self, html: str, url: str) -> None:
        self._html = html
        self._url = url
        self._tree: Any = None

    def find_day(self) -> str:
        """The day it was published, YYYY-MM-DD, or "" when there is none to be found quickly."""
        from htmldate import find_date

        self._tree = tree = self._take()
        if tree is None:
            return ""
        # Its extensive search costs as much as the extraction, and finds a day on nearly every page that has none.
        return find_date(tree, url=self._url, extensive_search=False, original_date=True) or ""

    def keep_text(self, *, quick: bool) -> str:
        """The text that trafilatura keeps; `quick` leaves out its comparison with other extractors."""
        from trafilatura.core import trafilatura_sequence
        from trafilatura.xml import xmltotxt

        hasten()
        tree = self._take()
        if tree is None:
            return ""
        # As its `bare_extraction` does it, which first copies the tree.
        options = _options(quick)
        try:
            body, text, _, _ = trafilatura_sequence(tree, options, self._url)
        except (TypeError, ValueError):  # which it takes for a document of no use
            return ""
        return xmltotxt(body, options.formatting) if len(text) >= options.min_output_size else ""

    def close(self) -> None:
        """Give back the memory of trafilatura's trees: 60 of 350 MB for a page of 5 MB."""
        self._tree = None
        if len(self._html) > LARGE_PAGE:
            give_back()

    def _take(self) -> Any:
        """A tree that nobody has pruned yet: trafilatura works in the one that it gets."""
        tree, self._tree = self._tree, None
        if tree is None:
            tree = _load(self._html)
            if tree is not None:
                _strip(tree)
        return tree


def _load(html: str) -> Any:
    """The page as lxml parses it, or None when there is nothing in it."""
    import lxml.html  # type: ignore[import-untyped]
    from lxml import etree

    # What libxml2 stumbles over: odd document types, and a root that is closed as it opens.
    start = _CLOSED_ROOT.sub(r"\1>", _DOCTYPE.sub("", html[:4096], count=1), count=1)
    page = f"{start}{html[4096:]}".encode("utf-8", "replace")
    try:
        return lxml.html.document_fromstring(page, parser=_parser())
    except etree.ParserError:  # empty
        return None


@functools.cache
def _options(quick: bool) -> Any:
    from trafilatura.settings import Extractor

    return Extractor(output_format="python", fast=quick, comments=False)


@functools.cache
def _parser() -> Any:
    """A parser as trafilatura's, but with one class for all elements: lxml.html asks Python for each anew."""
    import lxml.html
    from lxml import etree

    parser = lxml.html.HTMLParser(
        collect_ids=False, default_doctype=False, encoding="utf-8", remove_comments=True, remove_pis=True
    )
    parser.set_element_class_lookup(
        etree.ElementDefaultClassLookup(
            element=lxml.html.HtmlElement,
            comment=lxml.html.HtmlComment,
            pi=lxml.html.HtmlProcessingInstruction,
            entity=lxml.html.HtmlEntity,
        )
    )
    return parser


def _strip(tree: Any) -> None:
    """Take out what is never content, but for structured data: trafilatura copies and searches its tree many times."""
    for element in list(tree.iter(*_STRIPPED)):
        if (element.tag != "script" or "json" not in element.get("type", "")) and element.getparent() is not None:
            element.drop_tree()
