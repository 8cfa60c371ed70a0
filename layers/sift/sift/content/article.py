"""The main content of a page: what trafilatura kept, or the whole of `main` where that is more than an article."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from sift.content import selection
from sift.content.dom import Page
from sift.content.markdown import Renderer

# A page that calls itself neither an article nor a product is given whole (its `main`, else its body less menus)
# when trafilatura kept less than this share of it: a list of entries, a thread, a page made of sections.
SHARE_OF_MAIN, SHARE_OF_BODY = 0.6, 0.1
# So is any page of which trafilatura found next to nothing.
MIN_WORDS = 20
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


def extract_article(page: Page, kept: str) -> Article:
    """The main content of a page, of which trafilatura kept this text. The page's tree is used up."""
    runs = selection.read_runs(page.body)
    region, is_main = selection.find_region(runs)
    there = selection.count_words(region)
    wanted = selection.count_text(kept)
    selection.keep_known(runs, kept)
    found = selection.count_kept(runs)
    if wanted > there and found < FOUND_SHARE * wanted:
        return Article("\n\n".join(line for line in kept.splitlines() if line.strip()) + "\n")
    share = selection.count_kept(region) / max(1, there)
    little = not page.kind and share < (SHARE_OF_MAIN if is_main else SHARE_OF_BODY)
    whole = little or (found < MIN_WORDS and found < 0.9 * there)
    if not whole:
        selection.complete(page.body, runs, region)
        whole = not any(run.kept for run in runs)
    if whole:
        selection.keep_all(runs, region)
    selection.clear_others(runs)
    content = Renderer(page.base).render(selection.find_holder(page.body, runs))
    return Article(content, whole=whole and not is_main)


@dataclass(frozen=True)
class Decision:
    """The text that trafilatura kept of a page, and the day it was published (YYYY-MM-DD), each "" when not found."""

    text: str = ""
    day: str = ""


def decide(html: str, url: str, *, text: bool = True, day: bool = True) -> Decision:
    """Find what is wanted, on one parse: the content by trafilatura, the day by htmldate."""
    if not (text or day):
        return Decision()
    import trafilatura

    tree = _load(html)
    if tree is None:
        return Decision()
    _strip(tree)
    found = ""
    if day:
        from htmldate import find_date

        # Its extensive search costs as much as the extraction, and finds a day on nearly every page that has none.
        found = find_date(tree, url=url, extensive_search=False, original_date=True) or ""
    if not text:
        return Decision(day=found)
    document: Any = trafilatura.bare_extraction(tree, url=url, include_comments=False, include_tables=True)
    return Decision("" if document is None else document.text or "", found)


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
