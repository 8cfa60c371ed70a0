"""HTML to Markdown or text, in one of three ways: the article, the whole page, or its plain text."""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterator
from typing import Any

from sift.content.article import Source, extract_article
from sift.content.byline import find_author, find_day, find_title
from sift.content.dom import MAX_NODES, Page, parse_page, serialize
from sift.content.links import find_page_links, render_links
from sift.content.markdown import Renderer
from sift.content.streamed import join_streamed
from sift.errors import TargetFailed

MAX_ARTICLE_CHARS = 5_000_000
# trafilatura takes some 50 µs for each element; the largest of 520 real pages has 19,000 of these.
MAX_ARTICLE_TAGS = 100_000

# An `iframe` that nobody closes holds all of the page after it, for readers without scripts; browsers have them.
_UNCLOSED = re.compile(r"<noscript[^<>]{0,500}>\s{0,500}<iframe\b[^<>]{0,5000}>\s{0,500}(?=</noscript)", re.I)
_CONTROLS = bytes({*range(0x20)} - {*b"\t\n\f\r"})


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No cycle collection: the trees are large, cyclic and in use to the end, so it would search them for nothing.

    Nor after that, in a child: it ends with its document. What its server had before it is frozen.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled and not gc.get_freeze_count():
            gc.enable()


@_uncollected()
def read_html(html: str, url: str, mode: str) -> tuple[str, dict[str, Any], list[str]]:
    """Content, metadata and warnings of a page; `mode` is article, page, text or links.

    Raises TargetFailed empty when there is no text in it, or no link.
    """
    # Nobody sees them, and html-to-markdown refuses a page that has many. In bytes it takes a tenth of the time.
    html = html.encode("utf-8", "replace").translate(None, _CONTROLS).decode()
    html = join_streamed(_UNCLOSED.sub("<noscript>", html))
    page = parse_page(html, url)
    warnings = []
    truncated = page.nodes >= MAX_NODES
    if truncated:
        warnings.append(f"Only the first {MAX_NODES} elements and texts of the page were read.")
    elif page.flattened:
        warnings.append("The page is nested or attributed beyond measure and was flattened.")
    day = find_day(page.head.get("published", ""))
    source = None
    if len(html) <= MAX_ARTICLE_CHARS and max(page.nodes, html.count("<")) <= MAX_ARTICLE_TAGS:
        # Weaker parsers than ours get the bounded tree of a page beyond measure; it could hold them up for minutes.
        source = Source(serialize(page) if page.flattened else html, page.base)
        day = day or source.find_day()
    elif mode == "article":
        mode = "page"
        warnings.append("The page is too large to find its main content; this is the whole page.")
    meta = _describe(page, day)
    if mode == "article" and source is not None:
        article = extract_article(page, source)
        content = article.content
        if article.whole:
            warnings.append("No main content was found; this is the whole page.")
    elif mode == "text":
        content = plain_text(page)
    elif mode == "links":
        more: dict[str, Any] = {"warnings": warnings}
        content = render_links(find_page_links(html, page.base), url, more)
        truncated, warnings = truncated or "truncated" in more, more["warnings"]
    else:
        content = _whole(page, html)
    if not content.strip():
        raise TargetFailed(
            "empty",
            "The page has no text.",
            "It may need a browser to build itself; use mode raw to see what it sends.",
            meta=meta,
        )
    return content, meta | ({"truncated": True} if truncated else {}), warnings


def _whole(page: Page, html: str) -> str:
    if page.flattened or page.from_noscript:
        return Renderer(page.base, images=True).render(page.body)
    import html_to_markdown

    options = html_to_markdown.ConversionOptions(
        base_url=page.base,
        extract_metadata=False,
        preprocessing=html_to_markdown.PreprocessingOptions(enabled=False),
        code_block_style=html_to_markdown.CodeBlockStyle.BACKTICKS,
    )
    return html_to_markdown.convert(html, options).content or ""


def plain_text(page: Page) -> str:
    """All text of a page, one block a line, without any mark-up."""
    lines = (re.sub(r"[ \r\f\u00a0]+", " ", line).strip() for line in page.body.text(lines=True).split("\n"))
    return "\n".join(line for line in lines if line) + "\n"


def _describe(page: Page, day: str) -> dict[str, Any]:
    """The fields of meta: what the head states, what the body shows where that is missing; of titles, the heading."""
    head = page.head
    return {
        "title": find_title(page.elements, head.get("title") or page.title)[:1000] or None,
        "author": (head.get("author") or find_author(page.elements))[:500] or None,
        "published": (day or head.get("published", ""))[:40] or None,
        "language": page.language or head.get("language") or None,
        "description": head.get("description", "")[:2000] or None,
        "canonical": page.canonical or None,
        "site_name": head.get("site_name") or None,
        "image": head.get("image") or None,
    }
