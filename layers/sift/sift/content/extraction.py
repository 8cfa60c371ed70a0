"""What a child does with one document: decode, detect, and hand it to the reader of its kind."""

from __future__ import annotations

import json
import sys
from typing import Any

from sift.content.charset import decode
from sift.content.filters import apply_filters, check_kind, confine
from sift.content.sniff import Sniffed, sniff
from sift.errors import TargetFailed

PRELOAD = (
    "trafilatura",
    "turbohtml",
    "html_to_markdown",
    "pypdfium2",
    "resiliparse.parse.encoding",
    "sift.content.grep",
    "sift.content.passages",
    "sift.content.query",
    "jq",
    "sift.content.html",
    "sift.content.pdf",
)
_MARKDOWN, _PLAIN = "text/markdown", "text/plain"
_PAGE_MARK = "<!-- page {page} -->"


def extract(head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """One document to content, as `sandbox.Entry`.

    `head`: url, content_type, mode, pages, engine, and `filters` where there are any. The answer's head:
    `content_type` of the content and `meta`, or `error` with code, detail, hint and meta.
    """
    sys.setrecursionlimit(20_000)  # trees are at most 512 deep, with several frames a level
    found = sniff(body, head["content_type"])
    filters = head.get("filters")
    meta: dict[str, Any] = {}
    try:
        if filters:
            check_kind(filters, found, head["mode"])
        content, content_type, meta = _read(found, head, body)
        if filters:
            confine()
            content, content_type, meta = apply_filters(filters, found, content, content_type, meta)
    except TargetFailed as error:
        about = {"media_type": found.media_type, **meta, **error.meta}
        return {"error": {"code": error.code, "detail": error.detail, "hint": error.hint, "meta": about}}, b""
    meta.setdefault("media_type", found.media_type)
    meta["chars"] = len(content)
    return {"content_type": f"{content_type}; charset=utf-8", "meta": meta}, content.encode("utf-8", "replace")


def _read(found: Sniffed, head: dict[str, Any], body: bytes) -> tuple[str, str, dict[str, Any]]:
    mode, pages = head["mode"], head["pages"]
    if found.kind == "binary":
        hint = f"Use mode raw{', without filters,' if head.get('filters') else ''} to get the bytes."
        raise TargetFailed("unsupported_media", f"{found.media_type} has no text to read.", hint)
    if mode == "raw":
        return _read_raw(found, body, head["content_type"])
    if found.kind == "pdf":
        from sift.content.pdf import read_pdf

        # A filter shows parts of the text: only marks with numbers then say which page one is of.
        separate = "\f" if mode == "text" and not head.get("filters") else _PAGE_MARK
        content, meta, warnings = read_pdf(body, pages, separate=separate, engine=head["engine"])
        return content, _PLAIN if mode == "text" else _MARKDOWN, {**meta, "warnings": warnings}
    if pages is not None:
        raise TargetFailed(
            "bad_pages", f"{found.media_type} has no pages.", "Leave `pages` out; it is for PDF documents."
        )
    text, charset = decode(body, head["content_type"])
    if not text.strip("\x00 \t\r\n\ufeff"):
        raise TargetFailed("empty", "The document is empty.", "Use mode raw to see what the server sends.")
    if found.kind == "html":
        from sift.content.html import read_html

        content, meta, warnings = read_html(text, head["url"], "article" if mode == "auto" else mode)
        meta |= {"charset": charset, "warnings": warnings}
        return content, _PLAIN if mode == "text" else _MARKDOWN, meta
    if (head.get("filters") or {}).get("jq") is not None:  # it parses the document itself, JSON Lines included
        return text, _PLAIN, {"charset": charset, "warnings": []}
    return _read_textual(found, text, charset, mode)


def _read_raw(found: Sniffed, body: bytes, content_type: str) -> tuple[str, str, dict[str, Any]]:
    """The source of a document as text; only filters ask for it, raw alone is the bytes."""
    if found.kind == "pdf":
        hint = "Leave mode raw out to filter the text of its pages."
        raise TargetFailed("unsupported_media", "The bytes of a PDF are not text.", hint)
    text, charset = decode(body, content_type)
    return text, _PLAIN, {"charset": charset, "warnings": []}


def _read_textual(found: Sniffed, text: str, charset: str, mode: str) -> tuple[str, str, dict[str, Any]]:
    meta: dict[str, Any] = {"charset": charset, "warnings": []}
    if found.kind == "json":
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            if found.media_type == "application/json" and not text.lstrip().startswith(("{", "[")):
                meta["warnings"].append("The server says JSON, and it is not.")
                return text, _PLAIN, meta
            raise TargetFailed(
                "damaged", "The JSON document does not parse.", "Use mode raw to get the bytes."
            ) from None
    if mode == "text":
        return text, _PLAIN, meta
    own = {"json": "application/json", "markdown": _MARKDOWN, "csv": found.media_type, "xml": found.media_type}
    return text, own.get(found.kind, _PLAIN), meta
