"""Office documents and books for the tests, by the libraries that people write them with, and parts put in by hand."""

from __future__ import annotations

import datetime
import io
import struct
import zipfile
from collections.abc import Callable

import docx
import openpyxl
import pptx

from tests.unit.content.compound import make_compound

ODF = "application/vnd.oasis.opendocument."
NAMES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in (("office", "office"), ("text", "text"), ("table", "table"), ("meta", "meta"))
)


def make_docx(*, text: bool = True) -> bytes:
    """A report with headings, lists, and a table with cells merged across and down."""
    document = docx.Document()
    document.core_properties.title = "On Piers"
    document.core_properties.author = "Ada Byron"
    document.core_properties.language = "en-GB"
    document.core_properties.created = datetime.datetime(2026, 3, 2, 10, 0, tzinfo=datetime.UTC)
    if text:
        document.add_heading("Harbour report", 1)
        paragraph = document.add_paragraph("The pier is ")
        paragraph.add_run("closed").bold = True
        document.add_paragraph("north", style="List Bullet")
        document.add_paragraph("south", style="List Bullet")
        table = document.add_table(3, 3)
        for row in range(3):
            for column in range(3):
                table.cell(row, column).text = f"r{row}c{column}"
        table.cell(0, 0).merge(table.cell(0, 1)).text = "wide | one"
        table.cell(1, 2).merge(table.cell(2, 2)).text = "tall"
    return _saved(document.save)


def make_xlsx(*, text: bool = True) -> bytes:
    """A sheet with a merged title row, blank cells, rows and columns; a second, and an empty one."""
    book = openpyxl.Workbook()
    book.properties.title, book.properties.creator = "Tides", "Ada Byron"
    sheet = book.active
    assert sheet is not None
    if text:
        sheet.title = "Spring"
        sheet["A1"] = "Tide table 2026"
        sheet.merge_cells("A1:D1")
        for row in (
            [],
            ["Port", "High", None, "Low"],
            ["Brest", 6.5, None, 1.25],
            ["Hull", None, None, datetime.date(2026, 3, 1)],
            ["a|b", True],
        ):
            sheet.append(row)
        book.create_sheet("Empty")
        second = book.create_sheet("Autumn")
        second["B2"], second["C2"], second["B3"], second["C3"] = "Port", "High", "Cork", 4
    return _saved(book.save)


def make_large_xlsx(rows: int) -> bytes:
    """A sheet of ten columns and many rows."""
    lines = "".join(f"<row>{'<c><v>1</v></c>' * 10}</row>" for _ in range(rows)).encode()

    def fill(name: str, data: bytes) -> bytes:
        start, found, end = data.partition(b"<sheetData>")
        return (
            start + found + lines + end
            if found
            else data.replace(b"<sheetData/>", b"<sheetData>" + lines + b"</sheetData>")
        )

    return remake(make_xlsx(text=False), fill)


def make_pptx() -> bytes:
    """Two slides, with bullets, notes and a table."""
    deck = pptx.Presentation()
    deck.core_properties.title = "Harbour plans"
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "First slide"
    slide.placeholders[1].text = "Point one\nPoint two"
    slide.notes_slide.notes_text_frame.text = "Say hello"
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Second slide"
    table = slide.shapes.add_table(2, 2, 0, 0, 100, 100).table
    for row in range(2):
        for column in range(2):
            table.cell(row, column).text = f"r{row}c{column}"
    return _saved(deck.save)


def make_odf(kind: str, body: str) -> bytes:
    """An OpenDocument file; `kind` is text, spreadsheet or presentation, `body` the content of its office element."""
    content = (
        f'<office:document-content {NAMES} xmlns:xlink="http://www.w3.org/1999/xlink" '
        'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0">'
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    meta = (
        f'<office:document-meta {NAMES} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>'
        "<dc:title>On Tides</dc:title><meta:initial-creator>Ada</meta:initial-creator>"
        "<meta:creation-date>2026-03-02T10:00:00</meta:creation-date><dc:language>en</dc:language>"
        "</office:meta></office:document-meta>"
    )
    return make_zip({"mimetype": ODF + kind, "content.xml": content, "meta.xml": meta})


ODT_BODY = (
    '<text:h text:outline-level="1">Tides</text:h><text:p>See '
    '<text:a xlink:href="http://x.test/t">the table</text:a></text:p>'
    "<table:table><table:table-row>"
    '<table:table-cell table:number-columns-spanned="2"><text:p>wide</text:p></table:table-cell>'
    "<table:covered-table-cell/></table:table-row>"
    "<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
    "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>"
)
ODS_BODY = (
    '<table:table table:name="Ports"><table:table-row>'
    '<table:table-cell office:value-type="string"><text:p>Port</text:p></table:table-cell>'
    '<table:table-cell office:value-type="string"><text:p>High</text:p></table:table-cell>'
    '</table:table-row><table:table-row><table:table-cell office:value-type="string"><text:p>Brest</text:p>'
    '</table:table-cell><table:table-cell office:value-type="float" office:value="6.5"><text:p>6.5</text:p>'
    '</table:table-cell></table:table-row><table:table-row table:number-rows-repeated="1048000"><table:table-cell '
    'table:number-columns-repeated="16384"/></table:table-row></table:table>'
)
ODP_BODY = (
    '<draw:page draw:name="p1"><draw:frame><draw:text-box><text:p>On a slide</text:p></draw:text-box></draw:frame>'
    "</draw:page>"
)


def make_epub(*, with_mimetype: bool = True) -> bytes:
    """A book of two chapters, whose reading order is not that of its files."""
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Sea</dc:title>'
        "<dc:creator>Ada</dc:creator><dc:creator>Bea</dc:creator><dc:language>en</dc:language>"
        "<dc:date>2026-01-02</dc:date></metadata>"
        '<manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="b"/><itemref idref="a"/></spine></package>'
    )
    chapter = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><h1>{0}</h1>'
        '<p>Text of {0} and <a href="http://x.test/{0}">more</a>.</p></body></html>'
    )
    files = {"mimetype": "application/epub+zip"} if with_mimetype else {}
    return make_zip(
        {
            **files,
            "META-INF/container.xml": container,
            "OEBPS/book.opf": package,
            "OEBPS/a.xhtml": chapter.format("Second"),
            "OEBPS/b.xhtml": chapter.format("First"),
        }
    )


def make_xls(cells: list[list[str]]) -> bytes:
    """An Excel workbook of before 2007 (BIFF5, label records) in its compound file."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    end = record(0x0A, b"")
    labels = b"".join(
        record(0x204, struct.pack("<HHHH", row, column, 0, len(text)) + text.encode("latin-1"))
        for row, line in enumerate(cells)
        for column, text in enumerate(line)
    )
    begin = record(0x809, struct.pack("<HHHH", 0x500, 5, 0, 0))
    name = b"Sheet1"
    place = len(begin) + 4 + 7 + len(name) + len(end)
    bound = record(0x85, struct.pack("<IHB", place, 0, len(name)) + name)
    sheet = record(0x809, struct.pack("<HHHH", 0x500, 0x10, 0, 0)) + labels + end
    return make_compound({"Book": begin + bound + end + sheet})


def make_encrypted_office() -> bytes:
    """What Office makes of a document with a password: the encrypted package in a compound file (MS-OFFCRYPTO)."""
    package = bytes(8) + b"\x9a" * 500
    return make_compound({"EncryptionInfo": struct.pack("<HHI", 4, 4, 0x40), "EncryptedPackage": package})


def make_docx_bomb(megabytes: int) -> bytes:
    """A document whose main part unpacks to this size."""
    with zipfile.ZipFile(io.BytesIO(make_docx())) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    head, tail = parts.pop("word/document.xml").split(b"<w:body>")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
        with archive.open("word/document.xml", "w", force_zip64=True) as part:
            part.write(head + b"<w:body>")
            for _ in range(megabytes):
                part.write(b"<w:p><w:r/></w:p>" * (1024 * 1024 // 17))
            part.write(tail)
    return out.getvalue()


def make_zip(files: dict[str, str | bytes]) -> bytes:
    """An archive with these entries, the first of them stored."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, data) in enumerate(files.items()):
            archive.writestr(name, data, zipfile.ZIP_STORED if number == 0 else zipfile.ZIP_DEFLATED)
    return out.getvalue()


def remake(body: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """An archive again, each entry as `change` gives it, without those that become None."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        entries = {name: change(name, archive.read(name)) for name in archive.namelist()}
    return make_zip({name: data for name, data in entries.items() if data is not None})


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    out = io.BytesIO()
    save(out)
    return out.getvalue()
