"""What a document is: its bytes first, then what the server says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from sift.content.archives import DOCX, EPUB, ODP, ODS, ODT, PPTX, XLSX, ZIP, identify_zip
from sift.content.charset import find_wide
from sift.content.signatures import find_signature, find_weak_signature

Kind = Literal[
    "html", "pdf", "office", "feed", "sitemap", "json", "jsonl", "xml", "csv", "markdown", "text", "gzip", "binary"
]

OFFICE = {
    DOCX: "docx",
    XLSX: "xlsx",
    PPTX: "pptx",
    ODT: "odt",
    ODS: "ods",
    ODP: "odp",
    EPUB: "epub",
    "application/rtf": "rtf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
}
"""Media types of office documents and books, with the names of their formats."""

# A comment ends at its own end, and what was passed is not read again: a page of comments would take for ever.
_HTML_START = re.compile(
    rb"(?>(?:<!--(?:(?!-->).){0,2000}-->|<\?xml[^>]{0,300}>|\s)*)<(?:!doctype\s+html|html|head)\b", re.I | re.S
)
_HTML_TAG = re.compile(
    rb"\s*<(?:title|meta|body|div|span|p|h[1-6]|table|ul|ol|a|article|section|main|img|br|script|style|b|i)\b", re.I
)
_MARKUP = {"text/html": "html", "application/xhtml+xml": "html"}
_TEXTUAL: dict[str, Kind] = {
    "text/csv": "csv",
    "text/x-csv": "csv",
    "text/comma-separated-values": "csv",
    "application/csv": "csv",
    "application/x-csv": "csv",
    "text/tab-separated-values": "csv",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/xml": "xml",
    "application/xml": "xml",
    "application/json": "json",
    "text/json": "json",
    "application/x-ndjson": "jsonl",
    "application/ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-jsonlines": "jsonl",
    "application/javascript": "text",
    "application/yaml": "text",
    "application/x-yaml": "text",
    "application/toml": "text",
    "application/x-sh": "text",
    "application/sql": "text",
}
# Exports call a table by the program that opens it, so that a browser does.
_SPREADSHEET = frozenset(
    {"application/vnd.ms-excel", "application/msexcel", "application/x-msexcel", "application/x-excel", XLSX}
)
# Servers that know no types call everything by one of these; there the address has a say.
_VAGUE = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream"})
_BY_SUFFIX: dict[str, tuple[Kind, str]] = {
    ".csv": ("csv", "text/csv"),
    ".tsv": ("csv", "text/tab-separated-values"),
    ".md": ("markdown", "text/markdown"),
    ".markdown": ("markdown", "text/markdown"),
    ".json": ("json", "application/json"),
    ".jsonl": ("jsonl", "application/x-ndjson"),
    ".ndjson": ("jsonl", "application/x-ndjson"),
}
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,40}:)?([A-Za-z_][\w.-]{0,40})([^>]{0,4000})")
_BLANK = re.compile(rb"\s*")
_RSS_1 = (b"http://purl.org/rss/1.0/", b"http://my.netscape.com/rdf/simple/0.9/")
_ATOM = (b"http://www.w3.org/2005/Atom", b"http://purl.org/atom/ns#")
_WINDOW = 4096
_MEDIA_TYPE = re.compile(r"\s*([A-Za-z0-9!#$&^_.+-]{1,80}/[A-Za-z0-9!#$&^_.+-]{1,80})\s*(?:;|$)")


@dataclass(frozen=True)
class Sniffed:
    """`kind` decides which reader gets the document, `media_type` is its type without parameters."""

    kind: Kind
    media_type: str


def parse_media_type(content_type: str) -> str:
    """The type of a Content-Type header in lower case, "" when there is none that is valid."""
    match = _MEDIA_TYPE.match(content_type)
    return match[1].lower() if match else ""


def sniff(body: bytes, content_type: str, url: str = "") -> Sniffed:
    """Tell a document's kind: from its first bytes, where they leave it open from its Content-Type, then its URL."""
    declared = parse_media_type(content_type)
    start = body[:_WINDOW]
    if _is_pdf(start, declared):
        return Sniffed("pdf", "application/pdf")
    if (signed := find_signature(start)) is not None:
        return _sniff_signed(body, signed, declared)
    if _looks_binary(start) and "utf-16" not in content_type.lower():
        known = declared if declared and not declared.startswith("text/") and declared not in _MARKUP else ""
        return Sniffed("binary", find_weak_signature(start) or known or "application/octet-stream")
    # For what follows a wide text is its ASCII part.
    head = start.replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    if (feed := _sniff_feed(head)) is not None:
        return Sniffed(feed, "application/xml" if declared in _MARKUP or declared in _VAGUE else declared)
    if declared in _MARKUP or _HTML_START.match(head):
        return Sniffed("html", declared if declared in _MARKUP else "text/html")
    return _sniff_text(head, declared, url)


def _is_pdf(start: bytes, declared: str) -> bool:
    """Readers take a PDF whose header comes late (ISO 32000-1, annex H.3); a text that names it is none."""
    place = start.find(b"%PDF-", 0, 1029)
    if place < 0 or _HTML_START.match(start):
        return False
    return not start[:place].strip() or declared == "application/pdf" or b" obj" in start or _looks_binary(start)


def _sniff_signed(body: bytes, signed: str, declared: str) -> Sniffed:
    media_type = identify_zip(body) if signed == ZIP else signed
    if media_type in OFFICE:
        return Sniffed("office", media_type)
    if signed in (ZIP, "application/x-ole-storage") and declared in OFFICE:
        # It says so, and its container is the right one: a damaged or protected document rather than an archive.
        return Sniffed("office", declared)
    if signed == "application/x-ole-storage":
        return Sniffed("office", signed)
    return Sniffed("gzip" if signed == "application/gzip" else "binary", media_type)


def _sniff_feed(head: bytes) -> Kind | None:
    """Say whether the root element is that of a feed or a sitemap."""
    root = _ROOT.match(head, _skip_prolog(head))
    if root is None:
        return None
    name, attributes = root[1], root[2]
    if name == b"rss":
        return "feed"
    if (name == b"RDF" and any(space in attributes for space in _RSS_1)) or (
        name == b"feed" and any(space in attributes for space in _ATOM)
    ):
        return "feed"
    return "sitemap" if name in (b"urlset", b"sitemapindex") else None


def _skip_prolog(head: bytes) -> int:
    """Where the root element starts: after declaration, comments, instructions and document type."""
    place = 0
    while True:
        blank = _BLANK.match(head, place)
        place = blank.end() if blank else place
        for opening, closing in ((b"<?", b"?>"), (b"<!--", b"-->"), (b"<!DOCTYPE", b">")):
            if head.startswith(opening, place):
                end = head.find(closing, place)
                if opening == b"<!DOCTYPE" and b"[" in head[place:end]:
                    end, closing = head.find(b"]", place), b"]>"
                if end < 0:
                    return len(head)
                place = end + len(closing)
                break
        else:
            return place


def _sniff_text(head: bytes, declared: str, url: str) -> Sniffed:
    if declared in _TEXTUAL:
        return Sniffed(_TEXTUAL[declared], declared)
    if declared.endswith("+json"):
        return Sniffed("json", declared)
    if declared.endswith("+xml"):
        return Sniffed("xml", declared)
    if declared in _VAGUE and (named := _BY_SUFFIX.get(_suffix(url))) is not None and not _HTML_TAG.match(head):
        return Sniffed(*named)
    if declared.startswith("text/") and declared != "text/plain":
        return Sniffed("text", declared)
    if declared in _SPREADSHEET and not head.lstrip().startswith((b"<", b"{", b"[")):
        return Sniffed("csv", "text/csv")
    if declared.startswith(("image/", "audio/", "video/", "font/")):
        return Sniffed("binary", declared)
    if not declared.startswith("text/"):
        head = head.lstrip()
        if head.startswith(b"<?xml"):
            return Sniffed("xml", "application/xml")
        if _HTML_TAG.match(head):
            return Sniffed("html", "text/html")
        if head.startswith((b"{", b"[")):
            return Sniffed("json", "application/json")
    return Sniffed("text", "text/plain")


def _suffix(url: str) -> str:
    name = urlsplit(url).path.rpartition("/")[2].lower()
    return name[name.rfind(".") :] if "." in name else ""


def _looks_binary(start: bytes) -> bool:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False  # UTF-16
    if 0 in start:
        if find_wide(start) is not None:
            return False
        if start.count(0) * 200 > len(start):
            return True  # fewer are a slip of a server's
    controls = sum(1 for byte in start if byte < 0x20 and byte not in b"\t\n\r\f\x1b\x08")
    return controls * 20 > len(start)
