"""Documents that the content tests make for themselves."""

from __future__ import annotations

import zlib


def make_pdf(
    texts: list[str], *, extra: dict[int, bytes] | None = None, resources: bytes = b"", trailer: bytes = b""
) -> bytes:
    """A small PDF with one line of text a page; `extra` are further objects by number, `resources` what pages share."""
    count = len(texts)
    objects: dict[int, bytes] = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Count %d /Kids [%s] >>"
        % (count, b" ".join(b"%d 0 R" % (10 + 2 * number) for number in range(count))),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    for number, text in enumerate(texts):
        stream = b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % text.encode("latin-1") if text else b""
        stream += b" /X1 Do" if resources else b""
        objects[10 + 2 * number] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> %s >> >>" % (11 + 2 * number, resources)
        )
        objects[11 + 2 * number] = make_stream(stream)
    objects.update(extra or {})
    out = bytearray(b"%PDF-1.7\n")
    offsets = {}
    for number, content in sorted(objects.items()):
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    size = max(objects) + 1
    out += b"xref\n0 %d\n" % size
    for number in range(size):
        out += b"%010d 00000 n \n" % offsets[number] if number in offsets else b"0000000000 65535 f \n"
    out += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, start)
    return bytes(out)


def make_stream(data: bytes, entries: bytes = b"") -> bytes:
    """A PDF stream object's content."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def make_pdf_bomb(megabytes: int) -> bytes:
    """A page whose content stream is deflated twice and unpacks to `megabytes` of drawing operators."""
    block = b"q 1 0 0 1 0 0 cm BT /F1 1 Tf (x) Tj ET Q\n" * 25_000
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()
    bomb = make_stream(zlib.compress(data, 9), b"/Filter [/FlateDecode /FlateDecode]")
    return make_pdf(["first"], extra={11: bomb})


def make_encrypted_pdf() -> bytes:
    """A PDF that asks for a password to open (RC4, 40 bit; the keys are of no password that a test knows)."""
    encrypt = b"<< /Filter /Standard /V 1 /R 2 /P -44 /O <%s> /U <%s> >>" % (b"41" * 32, b"42" * 32)
    return make_pdf(
        ["secret"], extra={5: encrypt}, trailer=b"/Encrypt 5 0 R /ID [<00112233445566778899aabbccddeeff> <00>]"
    )
