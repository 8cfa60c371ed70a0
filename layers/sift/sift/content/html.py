"""HTML to Markdown or text, in one of three ways: the article, the whole page, or its plain text."""

from __future__ import annotations

import re
from typing import Any

from sift.content.allocator import LARGE_PAGE, give_back
from sift.content.article import (
    FOUND_SHARE,
    TOO_LITTLE,
    TOO_LITTLE_OF_ARTICLE,
    Decision,
    count_words,
    decide,
    find_root,
    is_too_little,
    keep_rule,
    without_asides,
)
from sift.content.dom import MAX_NODES, Page, parse_page, serialize
from sift.content.links import find_page_links, render_links
from sift.content.markdown import Renderer
from sift.errors import TargetFailed

MAX_ARTICLE_CHARS = 5_000_000
# trafilatura takes some 50 µs for each element; the largest of 520 real pages has 19,000 of these.
MAX_ARTICLE_TAGS = 100_000

_LINES = re.compile(r"[ \t\r\f\u00a0]*\n[ \t\r\f\u00a0]*")
_TAGS = re.compile(r"(\*\*|\*|~~|`)")


def read_html(html: str, url: str, mode: str) -> tuple[str, dict[str, Any], list[str]]:
    """Content, metadata and warnings of a page; `mode` is article, page, text or links.

    Raises TargetFailed empty when there is no text in it, or no link.
    """
    html = html.replace("\x00", "")  # browsers do the same; html-to-markdown refuses a page that has many
    page = parse_page(html, url)
    links = list(find_page_links(html, page.base)) if mode == "links" else []
    warnings = []
    truncated = page.nodes >= MAX_NODES
    if truncated:
        warnings.append(f"Only the first {MAX_NODES} elements and texts of the page were read.")
    elif page.flattened:
        warnings.append("The page is nested or attributed beyond measure and was flattened.")
    if len(html) > MAX_ARTICLE_CHARS or max(page.nodes, html.count("<")) > MAX_ARTICLE_TAGS:
        decision = Decision("", {})
        if mode == "article":
            mode = "page"
            warnings.append("The page is too large to find its main content; this is the whole page.")
    else:
        if page.flattened:
            # Weaker parsers than ours get the bounded tree; the original could hold them up for minutes.
            html = serialize(page)
        decision = decide(html, page.base)
        if len(html) > LARGE_PAGE:
            give_back()  # the tree that trafilatura had: 60 of 350 MB for a page of 5 MB
    if mode == "article":
        content = _article(page, html, decision, warnings)
    elif mode == "text":
        content = plain_text(page)
    elif mode == "links":
        content = render_links(links, url)
    else:
        content = _whole(page, html)
    if not content.strip():
        raise TargetFailed(
            "empty",
            "The page has no text.",
            "It may need a browser to build itself; use mode raw to see what it sends.",
            meta=_describe(page, decision),
        )
    return content, _describe(page, decision) | ({"truncated": True} if truncated else {}), warnings


def _article(page: Page, html: str, decision: Decision, warnings: list[str]) -> str:
    rest = without_asides(page.body)
    rest_text = rest.text()
    kept = decision.text
    share = TOO_LITTLE_OF_ARTICLE if page.is_article else TOO_LITTLE
    if is_too_little(kept, rest_text, share):
        kept = decide(html, page.base, recall=True).text
    if kept and not is_too_little(kept, rest_text, share):
        keep = keep_rule(kept)
        content = Renderer(page.base, keep).render(find_root(page.body, keep))
        if count_words(content) >= FOUND_SHARE * count_words(kept):
            return content
        # It stands in no block of the page (structured data, for one): better plain than lost.
        return "\n\n".join(line for line in kept.splitlines() if line.strip()) + "\n"
    warnings.append("No main content was found; this is the whole page.")
    return Renderer(page.base).render(rest) or Renderer(page.base).render(page.body)


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
    parts: list[str] = []
    waiting: list[Any] = [page.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            parts.append(node)
        elif node.tag == "br":
            parts.append("\n")
        elif node.tag in ("td", "th"):
            parts.append("\t")
            waiting += reversed(node.children)
        elif node.is_block:
            parts.append("\n")
            waiting.append("\n")
            waiting += reversed(node.children)
        else:
            waiting += reversed(node.children)
    lines = (re.sub(r"[ \r\f\u00a0]+", " ", line).strip() for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line) + "\n"


def _describe(page: Page, decision: Decision) -> dict[str, Any]:
    """The fields of meta: trafilatura's word before the head's own, which fills in what that does not find."""
    found, head = decision.metadata, page.head
    return {
        "title": (found.get("title") or head.get("title") or page.title)[:1000] or None,
        "author": (found.get("author") or head.get("author", ""))[:500] or None,
        "published": (found.get("date") or head.get("published", ""))[:40] or None,
        "language": page.language or found.get("language") or head.get("language") or None,
        "description": (found.get("description") or head.get("description", ""))[:2000] or None,
        "canonical": page.canonical or None,
        "site_name": head.get("site_name") or None,
        "image": head.get("image") or None,
    }
