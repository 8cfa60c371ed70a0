"""PDFs, archives, content codings and programs made to break whoever opens them."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable

import brotli

from tests.unit.content.documents import make_encrypted_pdf, make_pdf, make_pdf_bomb, make_stream

_MIB = 1 << 20


def _page_tree_loop() -> bytes:
    return make_pdf(["one"], extra={2: b"<< /Type /Pages /Count 100000 /Kids [2 0 R 10 0 R 2 0 R] >>"})


def _form_in_itself() -> bytes:
    form = make_stream(
        b"/X1 Do /X1 Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X1 4 0 R >> >>"
    )
    return make_pdf(["one"], extra={4: form}, resources=b"/XObject << /X1 4 0 R >>")


def _many_pages() -> bytes:
    return make_pdf(["one"], extra={2: b"<< /Type /Pages /Count 100000 /Kids [%s] >>" % (b"10 0 R " * 100_000)})


def _character_map(ranges: bytes) -> bytes:
    cmap = make_stream(b"begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange\n" + ranges + b"\nendcmap")
    font = b"<< /Type /Font /Subtype /Type0 /BaseFont /F /Encoding /Identity-H /ToUnicode 4 0 R >>"
    return make_pdf(["one two"], extra={3: font, 4: cmap})


def _object_stream_loop() -> bytes:
    """A page tree in an object stream that extends, and lies in, itself."""
    inner = b"2 0 << /Type /Pages /Count 1 /Kids [10 0 R] >>"
    stream = make_stream(inner, b"/Type /ObjStm /N 1 /First 4 /Extends 6 0 R")
    body = make_pdf(["one"], extra={6: stream}, trailer=b"/XRefStm 9")
    return body.replace(b"2 0 obj", b"2 9 obj").replace(b"/Length 4", b"/Length 6 0 R ")


def _xref_loop() -> bytes:
    body = make_pdf(["one"])
    at = body.rindex(b"startxref\n") + 10
    start = int(body[at:].split(b"\n")[0])
    return make_pdf(["one"], trailer=b"/Prev %d" % start)


def _filters() -> bytes:
    packed = zlib.compress(b"BT (x) Tj ET")
    return make_pdf(
        ["one"], extra={11: make_stream(packed, b"/Filter [%s]" % (b"/ASCIIHexDecode /FlateDecode " * 5_000))}
    )


def _deep_arrays() -> bytes:
    return make_pdf(["one"], extra={11: make_stream(b"[" * 3_000_000)})


PDFS: tuple[tuple[str, Callable[[], bytes]], ...] = (
    ("a stream of 1 GB", lambda: make_pdf_bomb(1_000)),
    ("a page tree that is its own kid", _page_tree_loop),
    ("a form within itself", _form_in_itself),
    ("100,000 pages", _many_pages),
    ("a character map without end", lambda: _character_map(b"1 beginbfrange <0000> <ffffffff> <0000> endbfrange")),
    ("a character map that is none", lambda: _character_map(b"9 beginbfrange <zz> <> [ <41> endbfrange beginbfchar <")),
    ("encrypted", make_encrypted_pdf),
    ("an object stream within itself", _object_stream_loop),
    ("a table of objects before itself", _xref_loop),
    ("10,000 filters on a stream", _filters),
    ("3,000,000 arrays in each other", _deep_arrays),
    ("cut off", lambda: make_pdf(["one"] * 50)[:4_000]),
)


def _gzip(megabytes: int) -> bytes:
    """Zeros, from one block that is repeated: what is behind the limit is never read, its checksum neither."""
    packer = zlib.compressobj(9, wbits=31)
    start = packer.compress(bytes(_MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(_MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + block * (megabytes - 1)


def _brotli(megabytes: int) -> bytes:
    packer = brotli.Compressor(quality=1)
    return b"".join(packer.process(bytes(_MIB)) for _ in range(megabytes)) + packer.finish()


def _zstd(megabytes: int) -> bytes:
    """Blocks of one repeated byte (RFC 8878, 3.1.1.2.2): four bytes for 128 KiB each."""
    head = b"\x28\xb5\x2f\xfd" + b"\x00" + b"\x38"  # no size, a window of 128 KiB
    block = (((128 * 1024) << 3) | (1 << 1)).to_bytes(3, "little") + b"\x00"
    return head + block * (8 * megabytes)


#: Name, Content-Encoding, body.
CODINGS: tuple[tuple[str, str, Callable[[], bytes]], ...] = (
    ("gzip of 1 GB", "gzip", lambda: _gzip(1_000)),
    ("deflate of 1 GB", "deflate", lambda: zlib.compress(bytes(_MIB) * 100, 9)),
    ("brotli of 1 GB", "br", lambda: _brotli(1_000)),
    ("zstd of 1 GB", "zstd", lambda: _zstd(1_000)),
    ("gzip of a gzip of 100 GB", "gzip, gzip", lambda: gzip.compress(_gzip(100_000), 6)),
    ("brotli of a gzip of 100 GB", "gzip, br", lambda: brotli.compress(_gzip(100_000), quality=1)),
    ("five codings", "gzip, gzip, gzip, gzip, gzip", lambda: gzip.compress(b"x")),
    ("a coding that is not", "gzip", lambda: b"\x1f\x8b\x08\x00" + b"\xff" * 100_000),
    ("a coding cut off", "br", lambda: brotli.compress(b"words " * 100_000)[:-9]),
)


def _archive(files: dict[str, bytes | int]) -> bytes:
    """A ZIP file; a number stands for that many MiB of spaces."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            with archive.open(name, "w", force_zip64=True) as file:
                if isinstance(content, bytes):
                    file.write(content)
                else:
                    for _ in range(content):
                        file.write(b" " * _MIB)
    return out.getvalue()


_TYPES = (
    b'<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    b'<Default Extension="xml" ContentType="application/xml"/></Types>'
)
_OFFICE = "application/vnd.openxmlformats-officedocument"


def _docx(document: bytes | int) -> bytes:
    return _archive({"[Content_Types].xml": _TYPES, "word/document.xml": document})


def _deep_docx() -> bytes:
    space = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    return _docx(b"<w:document " + space + b"><w:body>" + b"<w:tbl><w:tr><w:tc>" * 200_000)


def _laughing_docx() -> bytes:
    lines = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 10))
    return _docx(b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY e0 "lol">' + lines + b"]><d>&e9;</d>")


def _xlsx() -> bytes:
    return _archive({"[Content_Types].xml": _TYPES, "xl/workbook.xml": 1, "xl/worksheets/sheet1.xml": 300})


def _epub() -> bytes:
    return _archive({"mimetype": b"application/epub+zip", "META-INF/container.xml": 1, "content.xhtml": 300})


#: Name, content type, body.
ARCHIVES: tuple[tuple[str, str, Callable[[], bytes]], ...] = (
    ("docx of 300 MB", f"{_OFFICE}.wordprocessingml.document", lambda: _docx(300)),
    ("docx of 600,000 levels", f"{_OFFICE}.wordprocessingml.document", _deep_docx),
    ("docx of entities of entities", f"{_OFFICE}.wordprocessingml.document", _laughing_docx),
    ("xlsx of 300 MB", f"{_OFFICE}.spreadsheetml.sheet", _xlsx),
    ("epub of 300 MB", "application/epub+zip", _epub),
    ("60,000 files", "application/zip", lambda: _archive({f"{n}/word/document.xml": b"" for n in range(60_000)})),
)

#: Name, and a program that never comes to an end of its own, or only after all memory.
PROGRAMS: tuple[tuple[str, str], ...] = (
    ("endless and silent", "def f: f; f"),
    ("endless output", "repeat(1)"),
    ("a list without end", "[range(1e12)]"),
    ("recursion", "def f: 1 + f; f"),
    ("a doubling text", 'reduce range(100) as $i ("x"; . + .)'),
    ("deep objects", "reduce range(1e9) as $i (1; {a: .})"),
    ("a pattern that backtracks", '("a" * 40 + "b") | test("^(a+)+$")'),
    ("all pairs of all pairs", "[limit(100000; repeat(1))] | [combinations(4)]"),
)
