"""What a zip archive holds, told by the names in it: office documents, books and programs are all zips."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

# Names looked at; the parts that tell the type stand among the first in every file that a writer makes.
MAX_NAMES = 4096

_OOXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."
DOCX = _OOXML + "wordprocessingml.document"
XLSX = _OOXML + "spreadsheetml.sheet"
PPTX = _OOXML + "presentationml.presentation"
ODT, ODS, ODP = _ODF + "text", _ODF + "spreadsheet", _ODF + "presentation"
EPUB = "application/epub+zip"
ZIP = "application/zip"

# ODF and EPUB put their type into a stored first entry of this name (ODF 1.3 part 2, 3.3; EPUB OCF 3.3, 4.3).
_MIMETYPE = b"mimetype"
_TOLD = frozenset({ODT, ODS, ODP, EPUB})
_BY_NAME = (
    (b"word/", DOCX),
    (b"xl/", XLSX),
    (b"ppt/", PPTX),
    (b"META-INF/container.xml", EPUB),
    (b"AndroidManifest.xml", "application/vnd.android.package-archive"),
    (b"META-INF/MANIFEST.MF", "application/java-archive"),
)
_LOCAL = struct.Struct("<4s22xHH")
_CENTRAL = struct.Struct("<4s24xHHH12x")
_END = struct.Struct("<4s12xI2x")
_END_REACH = 65_535 + 22  # the end record and the longest comment after it


def identify_zip(body: bytes) -> str:
    """The media type of a zip archive; `application/zip` for one of no known kind.

    Reads names only, unpacks nothing. An archive that breaks off is told by the names that are there.
    """
    if (told := _told_type(body)) is not None:
        return told
    names = list(_central_names(body)) or list(_local_names(body))
    for start, media_type in _BY_NAME:
        if any(name.startswith(start) for name in names):
            return media_type
    return ZIP


def _told_type(body: bytes) -> str | None:
    if len(body) < _LOCAL.size:
        return None
    _, name_length, extra_length = _LOCAL.unpack_from(body)
    start = _LOCAL.size + name_length
    if body[_LOCAL.size : start] != _MIMETYPE:
        return None
    told = re.match(rb"[a-z]+/[a-z0-9.+-]+", body[start + extra_length : start + extra_length + 100])
    name = told[0].decode("ascii") if told else ""
    # Writers leave out what should part the type from the next entry's "PK".
    return next((known for known in _TOLD if name == known or name == known + "-template"), None)


def _central_names(body: bytes) -> Iterator[bytes]:
    end = body.rfind(b"PK\x05\x06", max(0, len(body) - _END_REACH))
    if end < 0 or end + _END.size > len(body):
        return
    _, place = _END.unpack_from(body, end)
    for _ in range(MAX_NAMES):
        if place + _CENTRAL.size > len(body):
            return
        signature, name_length, extra_length, comment_length = _CENTRAL.unpack_from(body, place)
        if signature != b"PK\x01\x02":
            return
        start = place + _CENTRAL.size
        yield body[start : start + name_length].replace(b"\\", b"/")
        place = start + name_length + extra_length + comment_length


def _local_names(body: bytes) -> Iterator[bytes]:
    place = 0
    for _ in range(MAX_NAMES):
        if place < 0 or place + _LOCAL.size > len(body):
            return
        _, name_length, _ = _LOCAL.unpack_from(body, place)
        yield body[place + _LOCAL.size : place + _LOCAL.size + name_length].replace(b"\\", b"/")
        place = body.find(b"PK\x03\x04", place + _LOCAL.size)
