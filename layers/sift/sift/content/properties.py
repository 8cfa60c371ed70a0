"""What an office document or book says of itself: title, author, dates and language, from its own parts."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from typing import Any

from sift.content.archives import DOCX, EPUB, ODP, ODS, ODT, PPTX, XLSX
from sift.content.xml_tree import local_name, parse_xml
from sift.errors import TargetFailed

MAX_PART_BYTES = 512 * 1024

_CORE = "docProps/core.xml"
_PARTS = {
    DOCX: _CORE,
    XLSX: _CORE,
    PPTX: _CORE,
    ODT: "meta.xml",
    ODS: "meta.xml",
    ODP: "meta.xml",
    EPUB: "META-INF/container.xml",
}
# RuntimeError is a part with a password, NotImplementedError one in a compression that zipfile does not know.
_UNREADABLE = (
    *(KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError),
    *(OSError, EOFError, zlib.error, TargetFailed),
)
# Elements of Dublin Core and of the formats' own, in the order of trust, by field of the envelope's meta.
_FIELDS = {
    "title": ("title",),
    "author": ("creator", "initial-creator"),
    "published": ("issued", "date", "created", "creation-date", "modified"),
    "language": ("language",),
    "description": ("description", "subject"),
}
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})?)?)?)?")


def read_properties(body: bytes, media_type: str) -> dict[str, str]:
    """Fields of meta that the document states; empty where it states none or they cannot be read."""
    if media_type == "application/rtf":
        return _read_rtf(body)
    part = _PARTS.get(media_type)
    if part is None:
        return {}
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            root = parse_xml(_read_part(archive, part))
            if media_type == EPUB:
                path = next((e.get("full-path", "") for e in root.iter("{*}rootfile")), "")
                root = parse_xml(_read_part(archive, path))
                root = next(root.iter("{*}metadata"), root)
    except _UNREADABLE:
        # The text has been read; what it says of itself is worth no failure. RuntimeError is a part with a password.
        return {}
    return _fields(root)


def _read_part(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as part:
        return part.read(MAX_PART_BYTES)


def _fields(root: Any) -> dict[str, str]:
    stated: dict[str, list[str]] = {}
    for element in root.iter():
        text = " ".join("".join(element.itertext()).split()) if len(element) == 0 else ""
        if text:
            stated.setdefault(local_name(element), []).append(text)
    found = {}
    for field, names in _FIELDS.items():
        values = next((stated[name] for name in names if name in stated), None)
        if values is None:
            continue
        value = ", ".join(values[:10]) if field == "author" else values[0]
        if field == "published":
            date = _DATE.match(value)
            value = date[0] if date else ""
        if value:
            found[field] = value[:1000]
    return found


def _read_rtf(body: bytes) -> dict[str, str]:
    found = {}
    head = body[:65_536]
    for field in ("title", "author"):
        match = re.search(rb"\{\\%s ([^{}]{1,1000})\}" % field.encode(), head)
        if match is not None:
            text = re.sub(rb"\\'([0-9a-fA-F]{2})|\\u(-?\d{1,5}) ?\??|\\[a-z]+-?\d* ?", _unescape_rtf, match[1]).decode(
                "utf-8", "replace"
            )
            if text.strip():
                found[field] = text.strip()
    return found


def _unescape_rtf(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes.fromhex(match[1].decode()).decode("cp1252", "replace").encode()
    return chr(int(match[2]) % 65_536).encode("utf-8", "replace") if match[2] else b""
