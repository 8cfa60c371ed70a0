"""Sitemaps and sitemap indexes as lists of links with the time of their last change."""

from __future__ import annotations

from typing import Any

from sift.content.links import MAX_LINKS, Link, absolute, note_cut, render_links
from sift.content.xml_tree import child_text, local_name, parse_xml
from sift.errors import TargetFailed


def read_sitemap(text: str, mode: str, url: str) -> tuple[str, str, dict[str, Any]]:
    """Content, media type and metadata of a sitemap: a Markdown list, or in text one address a line, a tab, its date.

    Raises TargetFailed empty when it has no address, damaged when it cannot be read.
    """
    meta: dict[str, Any] = {"warnings": []}
    pages: list[tuple[str, str]] = []
    for entry in parse_xml(text):
        if len(pages) == MAX_LINKS:
            note_cut(meta, f"Only the first {MAX_LINKS} addresses of the sitemap were read.")
            break
        if local_name(entry) in ("url", "sitemap") and (page := absolute(Link(child_text(entry, "loc"), "", url))):
            pages.append((page, child_text(entry, "lastmod")))
    if not pages:
        raise TargetFailed("empty", "The sitemap has no addresses.", "Use mode raw to see what the server sends.")
    if mode == "links":
        return render_links((Link(page, "", url) for page, _ in pages), "", meta), "application/x-ndjson", meta
    if mode == "text":
        return "".join(f"{page}\t{date}".rstrip() + "\n" for page, date in pages), "text/plain", meta
    return "".join(f"- <{page}>" + (f" ({date})" if date else "") + "\n" for page, date in pages), "text/markdown", meta
