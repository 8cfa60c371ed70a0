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
        ("日本語".encode("iso2022_jp"), "", "日本語", "iso-2022-jp"),
        ("港のカ".encode("iso2022_jp"), "text/plain; charset=utf-8", "港のカ", "iso-2022-jp"),
        ("ﾐﾅﾄ".encode("iso2022_jp_ext"), "text/plain", "ﾐﾅﾄ", "iso-2022-jp"),
        ("항구".encode("iso2022_kr"), "text/plain", "항구", "iso-2022-kr"),
        ("港口".encode("hz"), "text/plain; charset=hz-gb-2312", "港口", "hz-gb-2312"),
        (b"~{ is a brace", "text/plain", "~{ is a brace", "utf-8"),
        (b"\x1b[31mred\x1b(B", "text/plain", "\x1b[31mred\x1b(B", "utf-8"),
        ("\x1b$B é".encode(), "text/plain", "\x1b$B é", "utf-8"),
        ("日本語".encode("iso2022_jp"), "text/html; charset=iso-2022-jp", "日本語", "iso-2022-jp"),
    ],
)
def test_decode(body: bytes, content_type: str, text: str | None, charset: str) -> None:
    got, name = decode(body, content_type)
    assert name == charset
    if text is not None:
        assert got == text


POLISH = "Zażółć gęślą jaźń, a potem idź na pocztę i wyślij list do cioci w Łodzi. "
GREEK = "Καλημέρα κόσμε, αυτή είναι μια σελίδα στα ελληνικά και πρέπει να διαβαστεί. "  # noqa: RUF001
TURKISH = "Şu köşe yaz köşesi, şu köşe kış köşesi; ığdır'ın al alması. "  # noqa: RUF001
HEBREW = "שלום עולם, זהו דף בעברית שצריך לקרוא אותו היטב. "
ARABIC = "مرحبا بالعالم، هذه صفحة باللغة العربية ويجب قراءتها. "
VIETNAMESE = "Tôi là người Việt Nam và đây là trang của tôi. "
BALTIC = "Šis puslapis yra lietuvių kalba, ąčęėįšųūž. "
THAI = "สวัสดีชาวโลก นี่คือหน้าเว็บภาษาไทยที่ต้องอ่านได้ "
JAPANESE = "これは日本語のページです。文字化けせずに読めなければなりません。カタカナも。"
KOREAN = "이것은 한국어 페이지입니다. 글자가 깨지지 않고 읽혀야 합니다. "


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        (POLISH, "cp1250", "windows-1250"),
        (POLISH, "iso8859-2", "ISO-8859-2"),
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "cp866", "ibm866"),
        ("Déjà vu “naïve” café… 50 € ", "cp1252", "latin1"),
        (GREEK, "cp1253", "windows-1253"),
        (TURKISH, "cp1254", "iso-8859-9"),
        (HEBREW, "cp1255", "windows-1255"),
        (ARABIC, "cp1256", "windows-1256"),
        (BALTIC, "cp1257", "windows-1257"),
        (THAI, "cp874", "tis-620"),
        (JAPANESE, "cp932", "x-sjis"),
        (JAPANESE, "euc_jp", "euc-jp"),
        (KOREAN, "cp949", "ks_c_5601-1987"),
        (KOREAN, "euc_kr", "euc-kr"),
        (CHINESE, "gbk", "gb2312"),
        ("繁體中文的網頁必須可以閱讀。", "big5", "big5"),
    ],
)
@pytest.mark.parametrize("place", ["http", "meta"])
def test_what_is_declared_is_believed_where_it_reads_well(text: str, codec: str, label: str, place: str) -> None:
    text = text * 8
    if place == "http":
        assert decode(text.encode(codec), f"text/html; charset={label}")[0] == text
    else:
        page = f'<html><head><meta http-equiv="Content-Type" content="text/html; charset={label}"></head>{text}'
        assert decode(page.encode(codec), "text/html")[0] == page


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "cp949"),
        (CHINESE, "gbk"),
        (RUSSIAN, "cp1251"),
        (GREEK, "cp1253"),
    ],
)
@pytest.mark.parametrize("content_type", ["text/html", "text/html; charset=utf-8"])
def test_what_is_declared_wrongly_or_not_is_detected(text: str, codec: str, content_type: str) -> None:
    page = f"<html><head><title>{text}</title></head><body><p>{text * 8}</p></body></html>"
    assert decode(page.encode(codec), content_type)[0] == page


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark(codec: str) -> None:
    page = '<html><head><meta charset="utf-16"></head><body>Grüße, “quoted” and more plain text</body></html>'
    assert decode(page.encode(codec), "text/html") == (page, codec)


def test_utf7_is_never_read() -> None:
    body = b"<meta charset=utf-7>+ADw-script+AD4-alert(1)+ADw-/script+AD4-"
    for content_type in ("text/html; charset=utf-7", "text/html; charset=unicode-1-1-utf-7", "text/html"):
        assert decode(body, content_type)[0] == body.decode()


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
