"""What a document is: its bytes first, then what the server says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["html", "pdf", "json", "xml", "csv", "markdown", "text", "binary"]

# Leading bytes that settle it (WHATWG MIME Sniffing, and libmagic's rows for what the web serves).
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS", "application/postscript"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "application/ogg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x7fELF", "application/x-elf"),
    (b"\x00asm", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}

_HTML_START = re.compile(rb"(?:<!--.{0,2000}?-->|<\?xml[^>]{0,300}>|\s)*<(?:!doctype\s+html|html|head)\b", re.I | re.S)
_HTML_TAG = re.compile(
    rb"\s*<(?:title|meta|body|div|span|p|h[1-6]|table|ul|ol|a|article|section|main|img|br|script|style|b|i)\b", re.I
)
_MARKUP = {"text/html": "html", "application/xhtml+xml": "html"}
_TEXTUAL: dict[str, Kind] = {
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/xml": "xml",
    "application/xml": "xml",
    "application/json": "json",
    "text/json": "json",
    "application/javascript": "text",
    "application/x-ndjson": "text",
    "application/jsonl": "text",
    "application/yaml": "text",
    "application/x-yaml": "text",
    "application/toml": "text",
    "application/x-sh": "text",
    "application/sql": "text",
}
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


def sniff(body: bytes, content_type: str) -> Sniffed:
    """Tell a document's kind from its first bytes and, where they leave it open, from its Content-Type."""
    declared = parse_media_type(content_type)
    start = body[:4096]
    if b"%PDF-" in start[:1024] and not _HTML_START.match(start):
        return Sniffed("pdf", "application/pdf")
    if (signed := _signature(start)) is not None:
        return Sniffed("binary", signed)
    if _looks_binary(start):
        known = declared if declared and not declared.startswith("text/") and declared not in _MARKUP else ""
        return Sniffed("binary", known or "application/octet-stream")
    if declared in _MARKUP or _HTML_START.match(start):
        return Sniffed("html", declared if declared in _MARKUP else "text/html")
    return _sniff_text(start, declared)


def _sniff_text(start: bytes, declared: str) -> Sniffed:
    if declared in _TEXTUAL:
        return Sniffed(_TEXTUAL[declared], declared)
    if declared.endswith("+json"):
        return Sniffed("json", declared)
    if declared.endswith("+xml"):
        return Sniffed("xml", declared)
    if declared.startswith("text/") and declared != "text/plain":
        return Sniffed("text", declared)
    if declared in ("image/svg+xml", "") or not declared.startswith(("text/", "image/", "audio/", "video/", "font/")):
        head = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        if head.startswith(b"<?xml"):
            return Sniffed("xml", "application/xml")
        if _HTML_TAG.match(head):
            return Sniffed("html", "text/html")
        if head.startswith((b"{", b"[")):
            return Sniffed("json", "application/json")
    if declared.startswith(("image/", "audio/", "video/", "font/")):
        return Sniffed("binary", declared)
    return Sniffed("text", "text/plain")


def _signature(start: bytes) -> str | None:
    for magic, media_type in _SIGNATURES:
        if start.startswith(magic):
            return media_type
    if start.startswith(b"RIFF"):
        return _RIFF.get(start[8:12])
    if start[4:8] == b"ftyp":
        return "image/avif" if start[8:12] in (b"avif", b"heic") else "video/mp4"
    return None


def _looks_binary(start: bytes) -> bool:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False  # UTF-16
    zeros = start.count(0)
    if zeros and zeros * 3 < len(start):
        return True  # more zeros than that is UTF-16 without a mark
    controls = sum(1 for byte in start if byte < 0x20 and byte not in b"\t\n\r\f\x1b\x00\x08")
    return controls * 20 > len(start)
