"""Bytes to text: which character set a document is really in, whatever it says."""

from __future__ import annotations

import codecs
import re

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# What the labels mean on the web (WHATWG Encoding Standard), where Python's codec of that name is narrower.
_WEB_NAMES = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
_ALIASES = {"x-sjis": "cp932", "x-gbk": "gb18030", "x-euc-jp": "euc_jp", "windows-31j": "cp932", "utf8mb4": "utf-8"}
# Codecs of Python that are no character sets, or that a web page must not choose.
_REFUSED = frozenset({"utf-7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"})

_HTTP = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.I)
_META = re.compile(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.I)
_XML = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{1,40})", re.I)
# Shifts of ISO-2022-JP (with half-width kana and JIS X 0212) and ISO-2022-KR; terminals use others.
_SHIFT = re.compile(rb"\x1b(?:\$[@B]|\$\([@BD]|\$\)C|\([IJ])")
_META_WINDOW = 4096
_SAMPLE = 65_536


def decode(body: bytes, content_type: str = "") -> tuple[str, str]:
    """The text of `body` and its character set (an IANA-like name); never fails.

    Order: BOM, shifts of ISO 2022, strict UTF-8, nearly UTF-8, the HTTP header, meta or XML declaration, detection.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(name, "replace"), _show(name)
    declared = [name for name in (_from_http(content_type), _from_markup(body)) if name]
    if seven_bit := _find_seven_bit(body, declared):
        return body.decode(seven_bit, "replace"), _show(seven_bit)
    if wide := find_wide(body):
        return body.decode(wide, "replace"), _show(wide)
    try:
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    if sum(1 for character in text if character > "\x7f") - bad >= 10 * bad:
        return text, "utf-8"
    for name in declared:
        text = body.decode(name, "replace")
        if _reads_well(text):
            return text, _show(name)
    name = _detect(body)
    return body.decode(name, "replace"), _show(name)


def _find_seven_bit(body: bytes, declared: list[str]) -> str | None:
    """The codec of a text in seven bits that shifts between sets, which is valid UTF-8 but none; None for others."""
    if b"\x1b" in body:
        if name := next((name for name in declared if name.startswith("iso2022")), None):
            return name
        if (shift := _SHIFT.search(body, 0, _SAMPLE)) is not None and body[:_SAMPLE].isascii():
            return "iso2022_kr" if shift[0].endswith(b"C") else "iso2022_jp_ext"
    return "hz" if "hz" in declared and b"~{" in body else None


def _from_http(content_type: str) -> str | None:
    match = _HTTP.search(content_type)
    return _codec(match[1]) if match else None


def _from_markup(body: bytes) -> str | None:
    window = body[:_META_WINDOW]
    match = _XML.search(window) or _META.search(window)
    return _codec(match[1].decode("ascii")) if match else None


def _codec(label: str) -> str | None:
    label = label.lower()
    try:
        found = codecs.lookup(_ALIASES.get(label, label))
    except (LookupError, ValueError, OSError):  # OSError: a child may not load what Python takes for a codec
        return None
    # `_is_text_encoding` is how Python itself keeps base64 and zlib out of bytes.decode.
    if found.name in _REFUSED or not getattr(found, "_is_text_encoding", True):
        return None
    return _WEB_NAMES.get(found.name, found.name)


def find_wide(body: bytes) -> str | None:
    """The codec of UTF-16 without a BOM, or None: Western text has a zero in every second byte, and in no other."""
    sample = body[:4096]
    zeros_first, zeros_second = sample[::2].count(0), sample[1::2].count(0)
    most, least = max(zeros_first, zeros_second), min(zeros_first, zeros_second)
    if len(sample) < 4 or most * 3 < len(sample) or least * 20 > most:
        return None
    return "utf-16-be" if zeros_first > zeros_second else "utf-16-le"


def _reads_well(text: str) -> bool:
    strange = sum(1 for character in text if character == "\ufffd" or "\x80" <= character <= "\x9f")
    other = sum(1 for character in text if character > "\x7f")
    return strange * 50 <= other


def _detect(body: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    sample = body if len(body) <= _SAMPLE else body[:_SAMPLE]
    # Its own mapping to the web's names loses Korean (cp949 comes out as utf-8); `_codec` has ours.
    name = detect_encoding(sample, max_len=_SAMPLE, html5_compatible=False)
    return _codec(name or "windows-1252") or "cp1252"


def _show(codec: str) -> str:
    return {
        "cp1252": "windows-1252",
        "cp932": "shift_jis",
        "big5hkscs": "big5",
        "cp949": "euc-kr",
        "hz": "hz-gb-2312",
    }.get(codec, re.sub(r"^iso2022_(jp|kr).*$", r"iso-2022-\1", re.sub(r"^cp(125\d|874)$", r"windows-\1", codec)))
