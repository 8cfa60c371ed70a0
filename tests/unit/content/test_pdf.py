"""PDF to text, with both engines."""

from __future__ import annotations

import pytest

from sift.content.grep import grep
from sift.content.passages import split_passages
from sift.content.pdf import read_pdf
from sift.errors import TargetFailed
from tests.unit.content.documents import make_encrypted_pdf, make_pdf, make_stream

MARK = "<!-- page {page} -->"
engines = pytest.mark.parametrize("engine", ["pdfium", "pypdf"])


def read(body: bytes, pages: str | None = None, engine: str = "pdfium") -> str:
    return read_pdf(body, pages, separate=MARK, engine=engine)[0]


def outcome(body: bytes, engine: str) -> str:
    """The text, or the code of the typed error."""
    try:
        return read(body, engine=engine)
    except TargetFailed as error:
        return error.code


def failure(body: bytes, engine: str, pages: str | None = None) -> str:
    with pytest.raises(TargetFailed) as caught:
        read(body, pages, engine)
    return caught.value.code


@engines
def test_pages_are_parted_and_counted(engine: str) -> None:
    content, meta, warnings = read_pdf(make_pdf(["one", "two", "three"]), None, separate=MARK, engine=engine)
    assert content == "<!-- page 1 -->\n\none\n\n<!-- page 2 -->\n\ntwo\n\n<!-- page 3 -->\n\nthree\n"
    assert meta["pages"] == {"total": 3, "returned": "1-3"}
    assert warnings == []


@engines
@pytest.mark.parametrize("line", ["<!-- page 9 -->", "  <!--PAGE 9, line 3 -->"])
def test_a_line_of_the_text_is_no_mark_of_a_page(engine: str, line: str) -> None:
    body = make_pdf([line, "two"])
    assert read(body, engine=engine) == f"<!-- page 1 -->\n\n\\{line.strip()}\n\n<!-- page 2 -->\n\ntwo\n"
    whole = read_pdf(body, None, separate="\f", engine=engine)[0]
    assert whole == f"\f\n\n{line.strip()}\n\n\f\n\ntwo\n"


def test_filters_name_the_page_that_a_line_is_on() -> None:
    content = read(make_pdf(["<!-- page 9 -->", "gamma rays"]))
    assert grep(content, "page 9", paged=True) == (["<!-- page 1 -->\n3: \\<!-- page 9 -->"], 1)
    assert [passage.page for passage in split_passages(content, paged=True)] == [1, 2]


@engines
def test_only_the_pages_asked_for(engine: str) -> None:
    content, meta, _ = read_pdf(make_pdf(["one", "two", "three", "four"]), "1,-1", separate=MARK, engine=engine)
    assert "one" in content
    assert "two" not in content
    assert "four" in content
    assert meta["pages"] == {"total": 4, "returned": "1,4"}


@engines
def test_four_different_errors(engine: str) -> None:
    assert failure(make_encrypted_pdf(), engine) == "encrypted"
    assert failure(b"%PDF-1.7\nnothing of the kind", engine) == "damaged"
    assert failure(make_pdf([""]), engine) == "empty"
    assert failure(make_pdf(["one"]), engine, "4") == "bad_pages"


@engines
def test_a_form_that_contains_itself_ends(engine: str) -> None:
    form = make_stream(
        b"BT /F1 12 Tf 72 600 Td (inner) Tj ET /X1 Do",
        b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] "
        b"/Resources << /Font << /F1 3 0 R >> /XObject << /X1 6 0 R >> >>",
    )
    body = make_pdf(["outer"], extra={6: form}, resources=b"/XObject << /X1 6 0 R >>")
    got = outcome(body, engine)
    assert "outer" in got or got in ("damaged", "too_large")


@engines
def test_a_broken_character_map_is_no_traceback(engine: str) -> None:
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>"
    cmap = make_stream(b"beginbfrange <00> <zz> [<0041 endbfrange beginbfchar <4> garbage")
    body = make_pdf(["words"], extra={3: font, 6: cmap})
    got = outcome(body, engine)
    assert "page 1" in got or got in ("damaged", "empty")


def test_a_truncated_file_is_read_as_far_as_it_goes() -> None:
    body = make_pdf(["one", "two"])
    assert "one" in read(body[: body.rindex(b"xref")])


def test_form_fields_are_text_too() -> None:
    appearance = make_stream(
        b"BT /F1 12 Tf 2 2 Td (filled in) Tj ET",
        b"/Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 3 0 R >> >>",
    )
    widget = (
        b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (filled in) /Rect [72 600 272 620] /F 4 "
        b"/AP << /N 7 0 R >> /P 10 0 R >>"
    )
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 11 0 R /Annots [6 0 R] "
        b"/Resources << /Font << /F1 3 0 R >> >> >>"
    )
    catalog = b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] >> >>"
    body = make_pdf(["Name:"], extra={1: catalog, 6: widget, 7: appearance, 10: page})
    assert "filled in" in read(body)


def test_document_information() -> None:
    info = b"<< /Title (On Piers) /Author (Ada Byron) /CreationDate (D:20240302101112Z) >>"
    _, meta, _ = read_pdf(make_pdf(["x"], extra={6: info}, trailer=b"/Info 6 0 R"), None, separate="", engine="pdfium")
    assert (meta["title"], meta["author"], meta["published"]) == ("On Piers", "Ada Byron", "2024-03-02")


def test_page_labels() -> None:
    catalog = b"<< /Type /Catalog /Pages 2 0 R /PageLabels << /Nums [0 << /S /r >> 2 << /S /D >>] >> >>"
    _, meta, _ = read_pdf(make_pdf(["a", "b", "c"], extra={1: catalog}), None, separate="", engine="pdfium")
    assert meta["page_labels"] == {"1": "i", "2": "ii", "3": "1"}
