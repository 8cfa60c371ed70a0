"""Office documents and books: Markdown, text, links, metadata, and every way in which one can be wrong."""

from __future__ import annotations

import re

import pytest

from sift.content.archives import DOCX, EPUB, ODP, ODS, ODT, PPTX, XLSX
from tests.unit.content.compound import make_compound
from tests.unit.content.office_documents import (
    ODP_BODY,
    ODS_BODY,
    ODT_BODY,
    make_docx,
    make_docx_bomb,
    make_encrypted_office,
    make_epub,
    make_odf,
    make_pptx,
    make_xls,
    make_xlsx,
    make_zip,
    remake,
)
from tests.unit.content.reading import fail, read

RTF = rb"{\rtf1\ansi\ansicpg1252{\info{\title On \'e9t\'e9}{\author Ada \u8364?}}{\b bold} caf\'e9\par}"


def widths(markdown: str) -> set[int]:
    """The numbers of columns that the rows of a table have."""
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    return {len(re.split(r"(?<!\\)\|", row)) for row in rows}


def test_a_word_document() -> None:
    content, media_type, meta = read(make_docx())
    assert media_type == "text/markdown"
    assert content.startswith("# Harbour report\n\nThe pier is **closed**\n\n- north\n- south\n")
    assert meta["media_type"] == DOCX
    assert (meta["title"], meta["author"], meta["language"]) == ("On Piers", "Ada Byron", "en-GB")
    assert meta["published"] == "2026-03-02T10:00:00Z"


def test_a_table_with_merged_cells_keeps_its_shape() -> None:
    content, _, _ = read(make_docx())
    assert widths(content) == {5}
    assert "| wide \\| one |  | r0c2 |\n| --- | --- | --- |\n| r1c0 | r1c1 | tall |\n| r2c0 | r2c1 |  |" in content


def test_a_spreadsheet_with_a_title_row_and_blank_cells() -> None:
    content, _, meta = read(make_xlsx())
    assert "Unnamed" not in content
    assert "NaN" not in content
    assert content == (
        "## Spring\n\nTide table 2026\n\n| Port | High | Low |\n| --- | --- | --- |\n| Brest | 6.5 | 1.25 |\n"
        "| Hull |  | 2026-03-01 |\n| a\\|b | TRUE |  |\n\n## Autumn\n\n| Port | High |\n| --- | --- |\n| Cork | 4 |\n"
    )
    assert (meta["media_type"], meta["title"], meta["author"]) == (XLSX, "Tides", "Ada Byron")


def test_a_presentation() -> None:
    content, _, meta = read(make_pptx())
    assert content.startswith(
        "## First slide\n\n- Point one\n- Point two\n\n> Say hello\n\n## Second slide\n\n| r0c0 |"
    )
    assert content.endswith("\n| r0c0 | r0c1 |\n| --- | --- |\n| r1c0 | r1c1 |\n")
    assert (meta["media_type"], meta["title"]) == (PPTX, "Harbour plans")


@pytest.mark.parametrize(
    ("kind", "body", "media_type", "expected"),
    [
        ("text", ODT_BODY, ODT, "# Tides\n\nSee [the table](http://x.test/t)\n\nwide\n\n| a | b |\n| --- | --- |\n"),
        ("spreadsheet", ODS_BODY, ODS, "| Port | High |\n| --- | --- |\n| Brest | 6.5 |\n"),
        ("presentation", ODP_BODY, ODP, "On a slide\n"),
    ],
)
def test_open_documents(kind: str, body: str, media_type: str, expected: str) -> None:
    content, _, meta = read(make_odf(kind, body), "application/octet-stream")
    assert content == expected
    assert (meta["media_type"], meta["title"], meta["author"], meta["language"]) == (
        media_type,
        "On Tides",
        "Ada",
        "en",
    )


@pytest.mark.parametrize("with_mimetype", [True, False])
def test_a_book_in_its_reading_order(with_mimetype: bool) -> None:
    content, _, meta = read(make_epub(with_mimetype=with_mimetype))
    assert content.index("# First") < content.index("# Second")
    assert (meta["media_type"], meta["author"], meta["published"]) == (EPUB, "Ada, Bea", "2026-01-02")


def test_rich_text() -> None:
    content, _, meta = read(RTF, "text/plain")
    assert content == "**bold** café\n"
    assert (meta["media_type"], meta["title"], meta["author"]) == ("application/rtf", "On été", "Ada €")


def test_a_workbook_of_before_2007() -> None:
    content, _, meta = read(make_xls([["Port", "High"], ["Brest", "6"]]))
    assert content == "| Port | High |\n| --- | --- |\n| Brest | 6 |\n"
    assert meta["media_type"] == "application/vnd.ms-excel"


def test_text_has_no_marks() -> None:
    content, media_type, _ = read(make_docx(), mode="text")
    assert media_type == "text/plain"
    assert content == (
        "Harbour report\nThe pier is closed\nnorth\nsouth\nwide | one\t\tr0c2\nr1c0\tr1c1\ttall\nr2c0\tr2c1\t\n"
    )


def test_links() -> None:
    content, media_type, _ = read(make_epub(), mode="links")
    assert media_type == "application/x-ndjson"
    assert (
        content == '{"url": "http://x.test/First", "text": "more"}\n{"url": "http://x.test/Second", "text": "more"}\n'
    )


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (make_encrypted_office(), ""),
        (make_encrypted_office(), DOCX),
        (make_encrypted_office(), "application/vnd.ms-excel"),
    ],
)
def test_a_password(body: bytes, content_type: str) -> None:
    assert fail(body, content_type)["code"] == "encrypted"


def test_an_open_document_with_a_password() -> None:
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
        'manifest:full-path="content.xml"><manifest:encryption-data/></manifest:file-entry></manifest:manifest>'
    )
    body = make_zip({"mimetype": ODT, "META-INF/manifest.xml": manifest, "content.xml": b"\x9a\x01" * 100})
    assert fail(body)["code"] == "encrypted"


@pytest.mark.parametrize("body", [make_docx(), make_xlsx(), make_pptx(), make_epub(), make_odf("text", ODT_BODY)])
def test_a_document_that_breaks_off(body: bytes) -> None:
    for length in (60, len(body) // 2, len(body) - 10):
        declared = read(body)[2]["media_type"]
        assert fail(body[:length], declared)["code"] == "damaged"


def test_a_document_without_its_main_part() -> None:
    body = remake(make_docx(), lambda name, data: None if name == "word/document.xml" else data)
    assert fail(body)["code"] == "damaged"


def test_a_document_whose_main_part_is_cut() -> None:
    body = remake(make_docx(), lambda name, data: data[: len(data) // 2] if name == "word/document.xml" else data)
    assert fail(body)["code"] == "damaged"


def test_a_zip_bomb() -> None:
    assert fail(make_docx_bomb(300))["code"] == "too_large"


def test_elements_nested_beyond_measure() -> None:
    def nest(name: str, data: bytes) -> bytes:
        deep = b"<w:body>" + b"<w:tbl><w:tr><w:tc>" * 5000
        return data.replace(b"<w:body>", deep) if name == "word/document.xml" else data

    assert fail(remake(make_docx(), nest))["code"] in ("too_large", "damaged")


def test_entities_are_not_expanded() -> None:
    def define(name: str, data: bytes) -> bytes:
        if name != "word/document.xml":
            return data
        data = data.replace(b"<w:document", b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:document', 1)
        return data.replace(b"closed", b"&a;")

    assert "root:" not in read(remake(make_docx(), define))[0]


@pytest.mark.parametrize("body", [make_docx(text=False), make_xlsx(text=False), make_odf("text", ""), rb"{\rtf1}"])
def test_no_text(body: bytes) -> None:
    assert fail(body)["code"] == "empty"


def test_what_is_known_of_a_document_without_text() -> None:
    content, media_type, meta = read(make_docx(text=False), mode="meta")
    assert media_type == "application/json"
    assert '"title": "On Piers"' in content
    assert meta["warnings"] == ["The document has no text."]


def test_a_container_of_something_else() -> None:
    error = fail(make_compound({"__properties_version1.0": b"a mail"}))
    assert error["code"] == "unsupported_media"
    assert "raw" in error["hint"]


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("META-INF/MANIFEST.MF", "application/java-archive"),
        ("AndroidManifest.xml", "application/vnd.android.package-archive"),
        ("notes.txt", "application/zip"),
    ],
)
def test_other_archives_are_refused(name: str, media_type: str) -> None:
    error = fail(make_zip({name: "words"}))
    assert error["code"] == "unsupported_media"
    assert media_type in error["detail"]


def test_a_document_inside_an_archive_does_not_make_it_one() -> None:
    assert "application/zip" in fail(make_zip({"inner.docx": make_docx()}))["detail"]


def test_pages_do_not_fit() -> None:
    assert fail(make_pptx(), pages="1")["code"] == "bad_pages"
