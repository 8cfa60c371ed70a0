"""What a child does with one document: decode, detect, and hand it to the reader of its kind."""

from __future__ import annotations

import json
import sys
import zlib
from typing import Any

from sift.content.charset import decode
from sift.content.filters import apply_filters, check_kind, confine
from sift.content.rules import judge
from sift.content.sniff import Sniffed, sniff
from sift.content.structured import JSON_LINES
from sift.content.textual import read_textual
from sift.errors import TargetFailed

PRELOAD = (
    "_strptime",  # what htmldate reads dates with, by way of datetime, and only in some pages
    "htmldate",
    "lxml.html",
    "trafilatura",
    "turbohtml",
    "protego",
    "html_to_markdown",
    "pypdfium2",
    "anydoc",
    "feedparser",
    "resiliparse.parse.encoding",
    "sift.content.grep",
    "sift.content.passages",
    "sift.content.query",
    "jq",
    "re2",
    "sift.content.html",
    "sift.content.pdf",
    "sift.content.pdf_links",
    "sift.content.feeds",
    "sift.content.office",
    "sift.content.sitemaps",
)
MAX_UNPACKED_BYTES = 20 * 1024 * 1024

_MARKDOWN, _PLAIN, _JSON = "text/markdown", "text/plain", "application/json"
_PAGE_MARK = "<!-- page {page} -->"


def extract(head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """One document to content, as `sandbox.Entry`.

    `head`: url, content_type, mode, pages, engine, and `filters` where there are any. The answer's head:
    `content_type` of the content and `meta`, or `error` with code, detail, hint and meta.
    """
    if head["mode"] == "robots":
        return judge(head, body)
    sys.setrecursionlimit(20_000)  # trees are at most 512 deep, with several frames a level
    found = sniff(body, head["content_type"], head["url"])
    filters = head.get("filters")
    meta: dict[str, Any] = {}
    left_out = False
    try:
        if found.kind == "gzip":
            # Sitemaps and exports are served packed, as files; one layer is taken off.
            body, left_out = _unpack(body)
            found = sniff(body, "", head["url"].removesuffix(".gz"))
        if filters:
            check_kind(filters, found, head["mode"])
        read = _read_meta if head["mode"] == "meta" else _read
        content, content_type, meta = read(found, head, body)
        if filters:
            confine()
            content, content_type, meta = apply_filters(filters, found, content, content_type, meta)
    except TargetFailed as error:
        about = {"media_type": found.media_type, **meta, **error.meta}
        return {"error": {"code": error.code, "detail": error.detail, "hint": error.hint, "meta": about}}, b""
    if left_out:
        meta["warnings"] = [*meta.get("warnings", ()), "Bytes after the end of the gzip file were left out."]
    meta.setdefault("media_type", found.media_type)
    meta["chars"] = len(content)
    return {"content_type": f"{content_type}; charset=utf-8", "meta": meta}, content.encode("utf-8", "replace")


def _read_meta(found: Sniffed, head: dict[str, Any], body: bytes) -> tuple[str, str, dict[str, Any]]:
    """What is known of a document, as JSON; a document without text has that too."""
    try:
        _, _, meta = _read(found, {**head, "mode": "text"}, body)
    except TargetFailed as error:
        if error.code != "empty" or not error.meta:
            raise
        meta = {**error.meta, "warnings": [error.detail]}
    known = {"media_type": found.media_type, **meta}
    known = {name: value for name, value in known.items() if value is not None and name != "warnings"}
    return json.dumps(known, ensure_ascii=False, indent=2) + "\n", _JSON, meta


def _read(found: Sniffed, head: dict[str, Any], body: bytes) -> tuple[str, str, dict[str, Any]]:
    mode, pages = head["mode"], head["pages"]
    if found.kind in ("binary", "gzip"):
        hint = f"Use mode raw{', without filters,' if head.get('filters') else ''} to get the bytes."
        raise TargetFailed("unsupported_media", f"{found.media_type} has no text to read.", hint)
    if mode == "raw":
        return _read_raw(found, body, head["content_type"])
    if found.kind == "pdf":
        from sift.content.pdf import read_pdf

        if mode == "links":
            from sift.content.pdf_links import read_pdf_links

            content, meta = read_pdf_links(body, pages, head["url"], engine=head["engine"])
            return content, JSON_LINES, meta
        # A filter shows parts of the text: only marks with numbers then say which page one is of.
        separate = "\f" if mode == "text" and not head.get("filters") else _PAGE_MARK
        content, meta, warnings = read_pdf(body, pages, separate=separate, engine=head["engine"])
        return content, _PLAIN if mode == "text" else _MARKDOWN, {**meta, "warnings": warnings}
    if pages is not None:
        raise TargetFailed(
            "bad_pages", f"{found.media_type} has no pages.", "Leave `pages` out; it is for PDF documents."
        )
    if found.kind == "office":
        from sift.content.office import read_office

        return read_office(body, found.media_type, mode, head["url"])
    text, charset = decode(body, head["content_type"])
    if not text.strip("\x00 \t\r\n\ufeff"):
        raise TargetFailed("empty", "The document is empty.", "Use mode raw to see what the server sends.")
    content, content_type, meta = _read_text(found, text, head)
    return content, content_type, {**meta, "charset": charset}


def _read_text(found: Sniffed, text: str, head: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    mode, url = head["mode"], head["url"]
    if found.kind == "html":
        from sift.content.html import read_html

        content, meta, warnings = read_html(text, url, "article" if mode == "auto" else mode)
        content_type = {"text": _PLAIN, "links": JSON_LINES}.get(mode, _MARKDOWN)
        return content, content_type, {**meta, "warnings": warnings}
    if found.kind == "feed":
        from sift.content.feeds import parse_feed, read_feed

        return read_feed(parse_feed(text, url), mode)
    if found.kind == "sitemap":
        from sift.content.sitemaps import read_sitemap

        return read_sitemap(text, mode, url)
    if (head.get("filters") or {}).get("jq") is not None:  # it parses the document itself, JSON Lines included
        return text, _PLAIN, {"warnings": []}
    return read_textual(found, text, mode, head["content_type"], url)


def _read_raw(found: Sniffed, body: bytes, content_type: str) -> tuple[str, str, dict[str, Any]]:
    """The source of a document as text; only filters ask for it, raw alone is the bytes."""
    if found.kind in ("pdf", "office"):
        hint = "Leave mode raw out to filter the text of the document."
        raise TargetFailed("unsupported_media", f"The bytes of {found.media_type} are not text.", hint)
    text, charset = decode(body, content_type)
    return text, _PLAIN, {"charset": charset, "warnings": []}


def _unpack(body: bytes) -> tuple[bytes, bool]:
    """A gzip file unpacked, all its members, and whether something else follows them, which is left out.

    Raises TargetFailed damaged or too_large.
    """
    out = bytearray()
    while body.startswith(b"\x1f\x8b"):
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            out += member.decompress(body, MAX_UNPACKED_BYTES + 1 - len(out))
        except zlib.error:
            break
        if len(out) > MAX_UNPACKED_BYTES:
            raise TargetFailed(
                "too_large",
                f"The gzip file unpacks to over {MAX_UNPACKED_BYTES} bytes.",
                "Use mode raw to get it packed.",
            )
        if not member.eof:
            break
        body = member.unused_data
    else:
        return bytes(out), bool(body.strip(b"\x00"))  # tapes and some programs fill a block up
    raise TargetFailed("damaged", "The gzip file cannot be unpacked.", "Use mode raw to get the bytes.")
