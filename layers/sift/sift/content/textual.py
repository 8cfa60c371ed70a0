"""Documents that are text already (JSON, XML, CSV, Markdown, plain): checked, and left as they are or made a table."""

from __future__ import annotations

import re
from typing import Any

from sift.content.delimited import MAX_CELLS, render_delimited
from sift.content.links import find_markdown_links, plain_text, render_links
from sift.content.sniff import Sniffed, parse_media_type
from sift.content.structured import JSON_LINES, check_json, check_lines
from sift.errors import TargetFailed

_MARKDOWN, _PLAIN = "text/markdown", "text/plain"
_HEADING = re.compile(r"^(?:# +(?P<marked>\S.{0,999}?)(?: +#+)?|(?P<underlined>\S.{0,999})\n=+) *$", re.M)
_FRONT = re.compile(r"\A---\n(?P<block>.{0,20000}?)\n(?:---|\.\.\.) *\n", re.S)
_FIELD = re.compile(r"^(title|author|date|description|lang|language): *[\"\']?(.{1,1000}?)[\"\']? *$", re.M)
_FIELD_NAMES = {"date": "published", "lang": "language"}


def read_textual(found: Sniffed, text: str, mode: str, content_type: str, url: str) -> tuple[str, str, dict[str, Any]]:
    """Content, media type and metadata of a decoded text, by the kind that was found.

    A table is Markdown in every mode but text. `links` are those of Markdown and plain text. Raises TargetFailed
    damaged (JSON that is none), empty (no links), unsupported_media (links of data).
    """
    if found.kind == "json":
        return _read_json(found, text, mode, content_type, url)
    if mode == "links":
        return _read_links(found, text, url)
    if found.kind == "jsonl":
        return _read_lines(found, text, mode, content_type)
    if found.kind == "xml":
        from sift.content.xml_tree import read_xml

        if mode == "text":
            content, meta = read_xml(text)
            return content, _PLAIN, meta
        return text, found.media_type, {"warnings": []}
    if mode == "text":
        return text, _PLAIN, _describe(found, text)
    if found.kind == "csv":
        table = render_delimited(text, found.media_type)
        if table is not None:
            return table, _MARKDOWN, {"warnings": []}
        warning = f"The table is over {MAX_CELLS} cells, too many for Markdown; it is left as it came."
        return text, found.media_type, {"warnings": [warning]}
    return text, _MARKDOWN if found.kind == "markdown" else _PLAIN, _describe(found, text)


def _read_json(found: Sniffed, text: str, mode: str, content_type: str, url: str) -> tuple[str, str, dict[str, Any]]:
    declared = parse_media_type(content_type)
    value, media_type, warnings = check_json(
        text, declared=declared in ("application/json", "text/json") or "+json" in declared
    )
    if media_type == "application/json" and isinstance(value, dict):
        from sift.content.feeds import JSON_FEED, parse_json_feed, read_feed

        version = value.get("version")
        if isinstance(version, str) and version.startswith(JSON_FEED):
            return read_feed(parse_json_feed(value, url), mode)
    if mode == "links":
        return _read_links(found, text, url)
    if mode == "text":
        media_type = _PLAIN
    elif media_type == "application/json":
        media_type = found.media_type
    return text, media_type, {"warnings": warnings}


def _read_lines(found: Sniffed, text: str, mode: str, content_type: str) -> tuple[str, str, dict[str, Any]]:
    try:
        warnings = check_lines(text)
    except TargetFailed:
        if parse_media_type(content_type) == found.media_type:
            raise
        return text, _PLAIN, {"warnings": []}  # only its name had said so
    return text, _PLAIN if mode == "text" else JSON_LINES, {"warnings": warnings}


def _read_links(found: Sniffed, text: str, url: str) -> tuple[str, str, dict[str, Any]]:
    if found.kind not in ("markdown", "text"):
        raise TargetFailed(
            "unsupported_media", f"{found.media_type} has no links of its own.", "Leave the mode out to read it."
        )
    meta = _describe(found, text)
    return render_links(find_markdown_links(text, url), url, meta), JSON_LINES, meta


def _describe(found: Sniffed, text: str) -> dict[str, Any]:
    """Warnings, and for Markdown what its front matter says, or its first heading as its title."""
    meta: dict[str, Any] = {"warnings": []}
    if found.kind == "markdown":
        head = text[:50_000].replace("\r\n", "\n")
        if front := _FRONT.match(head):
            for name, value in _FIELD.findall(front["block"]):
                meta[_FIELD_NAMES.get(name, name)] = value
        if "title" not in meta and (heading := _HEADING.search(head)):
            meta["title"] = plain_text(heading["marked"] or heading["underlined"]).strip()
    return meta
