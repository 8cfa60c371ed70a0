"""Children open no file: whatever a document needs is loaded before the first of them is forked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sift.content.child import ForkServer
from tests.unit.content.documents import make_encrypted_pdf, make_pdf, make_pdf_bomb

WORDS = "The harbour authority published a long statement on the state of the northern pier. "
DATES = (
    "12 de marzo de 2024",
    "le 3 février 2023",
    "3. Mai 2021",
    "2024年5月6日",
    "6 мая 2024",
    "May 6th, 2024",
    "hier",
)
CHARSETS = ("gb18030", "shift_jis", "euc-kr", "big5", "koi8-r", "iso-8859-7", "windows-1255", "iso-2022-jp")


def page(body: str, charset: str = "utf-8") -> bytes:
    head = f"<head><meta charset={charset}><title>T</title></head>"
    text = f"<!doctype html><html>{head}<body><article>{body}<p>{WORDS * 4}</p></article></body></html>"
    return text.encode(charset, "replace")


def documents() -> list[tuple[str, bytes]]:
    """Content types and documents, none of them among the samples that the server reads itself."""
    rich = "<h2>Two</h2><pre><code class=language-py>x = 1</code></pre><dl><dt>a<dd>b</dl><img src=x.png alt=x>"
    rows = "".join(f"<tr><td>{number}<td>{number * 7}" for number in range(30))
    return [
        *(("text/html; charset=utf-8", page(f"<p class=date>{date}</p>")) for date in DATES),
        *(("text/html", page("Größe 港湾 항구 порт λιμάνι", charset)) for charset in CHARSETS),
        ("text/html", page(f"{rich}<table>{rows}</table><blockquote>q</blockquote><ol><li>a<ul><li>b</ul></ol>")),
        ("text/html", b"<p>" + "côté ".encode("latin-1") * 50),
        ("text/html", b"<a href=/>" * 2000 + b"links"),
        (
            "text/html",
            page("<!-- comment --><svg><text>t</text></svg><math><mi>x</mi></math><select><option>o</select>"),
        ),
        ("application/pdf", make_pdf(["one", "two"])),
        ("application/pdf", make_encrypted_pdf()),
        ("application/pdf", make_pdf_bomb(1)),
        ("application/pdf", make_pdf(["one"])[:-200]),
        ("application/json", b'{"a": '),
        ("application/rss+xml", b"<?xml version='1.0'?><rss><channel><title>t</title></channel></rss>"),
    ]


async def read(server: ForkServer, content_type: str, body: bytes, **more: str) -> dict[str, Any]:
    head: dict[str, Any] = {"url": "http://a.test/2024/05/06/x", "content_type": content_type, "pages": None}
    answer, _ = await server.run({**head, "mode": "auto", "engine": "pdfium", **more}, body, 60.0)
    return answer


@asynccontextmanager
async def open_server() -> AsyncIterator[ForkServer]:
    path = [str(Path(__file__).parent), *sys.path]
    server = ForkServer("watched_entry:read", "sift.content.preparation:prepare", path=path)
    try:
        yield server
    finally:
        await server.aclose()


def test_no_document_has_anything_left_to_load() -> None:
    async def main() -> dict[str, list[str]]:
        loaded: dict[str, list[str]] = {}
        async with open_server() as server:
            for number, (content_type, body) in enumerate(documents()):
                for mode in ("article", "page", "text") if "html" in content_type else ("auto",):
                    for engine in ("pdfium", "pypdf") if "pdf" in content_type else ("pdfium",):
                        answer = await read(server, content_type, body, mode=mode, engine=engine)
                        if answer["loaded"]:
                            loaded[f"{number} {content_type} {mode} {engine}"] = answer["loaded"]
        return loaded

    assert asyncio.run(main()) == {}


@pytest.mark.parametrize("label", ["no-such", "idna", "undefined", "../../etc"])
def test_a_charset_that_is_none_costs_nothing(label: str) -> None:
    async def main() -> dict[str, Any]:
        async with open_server() as server:
            return await read(server, f"text/html; charset={label}", "<p>Größe und Maß</p>".encode("latin-1") * 9)

    assert asyncio.run(main())["meta"]["charset"] == "windows-1252"
