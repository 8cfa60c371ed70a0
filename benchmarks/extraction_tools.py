"""The extractors that are compared: each takes a page's HTML and its address and answers with Markdown or text."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

Extract = Callable[[str, str], str]


def load_sift() -> Extract:
    """Our reader, with the metadata that every page gets."""
    from sift.content.html import read_html
    from sift.errors import TargetFailed

    sys.setrecursionlimit(20_000)  # as in a child

    def run(html: str, url: str) -> str:
        try:
            return read_html(html, url or "https://page.example/", "article")[0]
        except TargetFailed:  # empty
            return ""

    return run


def load_trafilatura() -> Extract:
    """trafilatura with its own Markdown, links and tables included, comments not; without metadata."""
    import trafilatura

    def run(html: str, url: str) -> str:
        found = trafilatura.extract(
            html, url=url or None, output_format="markdown", include_comments=False, include_links=True
        )
        return found or ""

    return run


def load_resiliparse() -> Extract:
    """resiliparse's main content as text."""
    from resiliparse.extract.html2text import extract_plain_text

    return lambda html, url: extract_plain_text(html, main_content=True, preserve_formatting=True)


def load_readability() -> Extract:
    """readability-lxml, by html-to-markdown. It is not pinned: pip trips over what it asks of lxml."""
    readability: Any = importlib.import_module("readability")

    def run(html: str, url: str) -> str:
        return _write(readability.Document(html).summary(html_partial=True), url) if html.strip() else ""

    return run


def load_main() -> Extract:
    """The `main` element, else the body, less menus, forms, asides and footers; written by html-to-markdown."""
    import turbohtml

    def run(html: str, url: str) -> str:
        document: Any = turbohtml.parse(html, positions=False)
        holder = document.find("main") or document.find("body")
        if holder is None:
            return ""
        for tag in ("nav", "header", "footer", "aside", "form", "script", "style", "svg", "noscript"):
            for element in list(holder.find_all(tag)):
                element.decompose()
        return _write(holder.inner_html, url)

    return run


def _write(html: str, url: str) -> str:
    import html_to_markdown

    options = html_to_markdown.ConversionOptions(
        base_url=url or None,
        extract_metadata=False,
        skip_images=True,
        preprocessing=html_to_markdown.PreprocessingOptions(enabled=False),
        code_block_style=html_to_markdown.CodeBlockStyle.BACKTICKS,
    )
    return html_to_markdown.convert(html, options).content or ""


TOOLS: dict[str, Callable[[], Extract]] = {
    "sift": load_sift,
    "trafilatura": load_trafilatura,
    "resiliparse": load_resiliparse,
    "readability-lxml": load_readability,
    "<main>": load_main,
}
