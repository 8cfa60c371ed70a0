"""PDFs as reportlab and pypdf write them: links, forms, passwords, metadata, pages without text, broken fonts."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pypdf
import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from tests.unit.content.documents import make_pdf, make_stream
from tests.unit.content.reading import fail, read

engines = pytest.mark.parametrize("engine", ["pdfium", "pypdf"])


def write(draw: Callable[[Canvas], object], **settings: Any) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, **settings)
    draw(canvas)
    canvas.save()
    return out.getvalue()


def draw_report(canvas: Canvas) -> None:
    canvas.setTitle("On Piers")
    canvas.setAuthor("Ada Byron")
    canvas.setSubject("The northern pier")
    canvas.drawString(72, 720, "See the port page here")
    canvas.linkURL("https://port.test/a?b=c", (72, 715, 300, 735))
    canvas.linkURL("/rel", (0, 0, 10, 10))
    canvas.showPage()
    canvas.drawString(72, 720, "Name:")
    canvas.acroForm.textfield(name="n", value="filled in", x=72, y=600, width=200, height=20)
    canvas.showPage()
    canvas.rect(10, 10, 10, 10)
    canvas.showPage()
    canvas.drawString(72, 720, "The last page")
    canvas.linkURL("https://port.test/last", (72, 715, 300, 735))
    canvas.showPage()


REPORT = write(draw_report)


@engines
def test_a_report(engine: str) -> None:
    content, media_type, meta = read(REPORT, engine=engine)
    assert media_type == "text/markdown"
    assert "<!-- page 1 -->\n\nSee the port page here" in content
    assert content.endswith("<!-- page 4 -->\n\nThe last page\n")
    assert (meta["title"], meta["author"], meta["description"]) == ("On Piers", "Ada Byron", "The northern pier")
    assert meta["pages"] == {"total": 4, "returned": "1-4"}
    assert meta["warnings"] == ["Without text, blank or scanned: page 3."]


def test_what_is_filled_in_is_text() -> None:
    assert "filled in" in read(REPORT, pages="2")[0]


def test_pages_in_text_follow_form_feeds() -> None:
    content, media_type, _ = read(REPORT, mode="text", pages="1,-1")
    assert (content, media_type) == ("\f\n\nSee the port page here\n\n\f\n\nThe last page\n", "text/plain")


@engines
def test_links(engine: str) -> None:
    content, media_type, meta = read(REPORT, mode="links", engine=engine)
    assert media_type == "application/x-ndjson"
    found = {link["url"]: link["text"] for link in map(json.loads, content.splitlines())}
    assert list(found) == ["https://port.test/a?b=c", "https://site.test/rel", "https://port.test/last"]
    if engine == "pdfium":
        assert found["https://port.test/a?b=c"] == "See the port page here"
    assert meta["pages"] == {"total": 4, "returned": "1-4"}


@engines
def test_links_of_pages(engine: str) -> None:
    assert json.loads(read(REPORT, mode="links", pages="4", engine=engine)[0])["url"] == "https://port.test/last"
    assert fail(REPORT, mode="links", pages="2", engine=engine)["code"] == "empty"
    assert fail(REPORT, mode="links", pages="9", engine=engine)["code"] == "bad_pages"
    assert fail(b"%PDF-1.7 and nothing more", mode="links", engine=engine)["code"] == "damaged"


@engines
@pytest.mark.parametrize("strength", [40, 128])
@pytest.mark.parametrize("mode", ["auto", "links", "meta"])
def test_a_password(engine: str, strength: int, mode: str) -> None:
    locked = write(draw_report, encrypt=StandardEncryption("secret", ownerPassword="owner", strength=strength))
    assert fail(locked, engine=engine, mode=mode)["code"] == "encrypted"


@engines
def test_a_password_for_the_owner_alone_locks_nothing(engine: str) -> None:
    body = write(draw_report, encrypt=StandardEncryption("", ownerPassword="owner", strength=128))
    assert "See the port page here" in read(body, engine=engine)[0]


@engines
def test_a_scan_is_empty_and_has_its_meta(engine: str) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setTitle("A scan")
        canvas.rect(10, 10, 100, 100)
        canvas.showPage()

    body = write(draw)
    error = fail(body, engine=engine)
    assert (error["code"], error["meta"]["title"], error["meta"]["pages"]["total"]) == ("empty", "A scan", 1)
    assert json.loads(read(body, mode="meta", engine=engine)[0])["title"] == "A scan"


@engines
def test_language_and_labels(engine: str) -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(REPORT))
    writer.root_object[pypdf.generic.NameObject("/Lang")] = pypdf.generic.TextStringObject("de-AT")
    writer.set_page_label(0, 1, "/r")
    writer.set_page_label(2, 3, "/D", prefix="A-")
    out = io.BytesIO()
    writer.write(out)
    meta = read(out.getvalue(), pages="2-", engine=engine)[2]
    assert meta["language"] == "de-AT"
    assert meta["page_labels"] == {"2": "ii", "3": "A-1", "4": "A-2"}


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
def test_a_file_that_breaks_off(cut: float) -> None:
    body = REPORT[: int(len(REPORT) * cut)]
    try:
        assert "page 1" in read(body)[0]
    except AssertionError:
        assert fail(body)["code"] in ("damaged", "empty")


def test_a_font_without_a_map_is_flagged() -> None:
    words = "The harbour authority published a long statement on the northern pier this morning"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>"
    entries = b"".join(b"<%02x> <%04x>\n" % (code, 0xE000 + code) for code in range(32, 127))
    cmap = make_stream(b"1 begincodespacerange <00> <ff> endcodespacerange 95 beginbfchar\n" + entries + b"endbfchar")
    meta = read(make_pdf([words], extra={3: font, 6: cmap}))[2]
    assert any("no sense" in warning for warning in meta["warnings"])
    assert read(make_pdf([words]))[2]["warnings"] == []


def test_a_table_of_contents_is_not_flagged() -> None:
    lines = [f"{number}.{part} " + "." * 60 + f" {number * 7}" for number in range(1, 4) for part in range(1, 4)]
    assert read(make_pdf(lines))[2]["warnings"] == []
