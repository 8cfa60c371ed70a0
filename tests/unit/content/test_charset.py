"""Character sets, told and untold."""

from __future__ import annotations

import codecs

import pytest

from sift.content.charset import decode

CHINESE = "中文网页的内容必须可以阅读、不能出现乱码。" * 5
RUSSIAN = "Привет, это страница на русском языке, и её надо прочитать." * 3


@pytest.mark.parametrize(
    ("body", "content_type", "text", "charset"),
    [
        (codecs.BOM_UTF8 + "ü".encode(), "text/html; charset=iso-8859-1", "ü", "utf-8"),
        ("üß".encode("utf-16"), "text/html", "üß", "utf-16-le"),
        ("plain text here".encode("utf-16-be"), "", "plain text here", "utf-16-be"),
        ("grüße".encode(), "text/html; charset=iso-8859-1", "grüße", "utf-8"),
        (RUSSIAN.encode("cp1251"), 'text/html; charset="windows-1251"', RUSSIAN, "windows-1251"),
        (b"<meta charset=koi8-r>" + RUSSIAN.encode("koi8-r"), "", "<meta charset=koi8-r>" + RUSSIAN, "koi8-r"),
        (RUSSIAN.encode("cp1251"), "", RUSSIAN, "windows-1251"),
        (b"caf\xe9 \x93quoted\x94", "text/html; charset=iso-8859-1", "café “quoted”", "windows-1252"),
        (b'<?xml version="1.0" encoding="iso-8859-2"?><a>\xb1</a>', "", None, "iso8859-2"),
        ("日本語".encode("iso2022_jp"), "text/html; charset=iso-2022-jp", "日本語", "iso2022_jp"),
    ],
)
def test_decode(body: bytes, content_type: str, text: str | None, charset: str) -> None:
    got, name = decode(body, content_type)
    assert name == charset
    if text is not None:
        assert got == text


def test_gbk_declared_as_gb2312() -> None:
    page = '<html><head><meta charset="gb2312"></head><body>' + CHINESE + "镕</body></html>"
    assert decode(page.encode("gbk"), "text/html; charset=gb2312") == (page, "gb18030")


def test_ascii_for_4096_bytes_and_then_utf8() -> None:
    text = "a" * 4096 + "größer und weiter"
    assert decode(text.encode(), "text/html")[0] == text


def test_nearly_utf8_stays_utf8() -> None:
    body = CHINESE.encode()
    text, charset = decode(body[:-1], "text/html; charset=iso-8859-1")
    assert charset == "utf-8"
    assert text.startswith(CHINESE[:-1])


@pytest.mark.parametrize("label", ["base64", "zip", "utf-7", "idna", "nonsense", "unicode_escape", "rot13"])
def test_what_is_no_character_set_is_passed_over(label: str) -> None:
    text, _ = decode(b"caf\xe9", f"text/html; charset={label}")
    assert "caf" in text
    assert "\\" not in text


def test_every_byte_decodes_to_something() -> None:
    body = bytes(range(256)) * 20
    text, charset = decode(body)
    assert text
    assert charset
