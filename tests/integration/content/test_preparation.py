"""Children open no file: whatever a document needs is loaded before the first of them is forked."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sift.content.child import ForkServer
from tests.unit.content.documents import make_encrypted_pdf, make_pdf, make_pdf_bomb
from tests.unit.content.office_documents import (
    ODT_BODY,
    make_docx,
    make_encrypted_office,
    make_epub,
    make_odf,
    make_pptx,
    make_xls,
    make_xlsx,
)

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


ATOM = (
    "<feed xmlns='http://www.w3.org/2005/Atom'><title>Port</title><updated>2024-05-06T10:00:00Z</updated><entry>"
    "<title>Pier</title><published>Lundi 6 mai 2024</published><content type='xhtml'><div><p>a &nbsp; b</p></div>"
    "</content></entry></feed>"
)
FILTERS = ({"jq": ".a"}, {"grep": "(?i)pier", "context": 1}, {"question": "Where is the pier?", "context": None})


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
        ("application/atom+xml", ATOM.encode()),
        ("application/atom+xml", ATOM.encode("utf-16")),
        ("application/gzip", gzip.compress(b"a,b\n1,2\n")),
        *(
            ("application/octet-stream", body)
            for body in (
                make_docx(),
                make_xlsx(),
                make_pptx(),
                make_xls([["a", "b"]]),
                make_epub(),
                make_odf("text", ODT_BODY),
                make_encrypted_office(),
            )
        ),
    ]


async def read(server: ForkServer, content_type: str, body: bytes, **more: Any) -> dict[str, Any]:
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
                for mode in ("auto", "page", "text", "links", "meta"):
                    for engine in ("pdfium", "pypdf") if "pdf" in content_type else ("pdfium",):
                        answer = await read(server, content_type, body, mode=mode, engine=engine)
                        if answer["loaded"]:
                            loaded[f"{number} {content_type} {mode} {engine}"] = answer["loaded"]
        return loaded

    assert asyncio.run(main()) == {}


def test_no_filter_has_anything_left_to_load() -> None:
    async def main() -> list[dict[str, Any]]:
        async with open_server() as server:
            return [
                await read(server, content_type, body, filters=filters)
                for filters in FILTERS
                for content_type, body in (("application/json", b'{"a": "pier"}'), ("text/html", page("pier")))
            ]

    answers = asyncio.run(main())
    assert [answer["loaded"] for answer in answers] == [[]] * len(answers)
    assert sum("error" not in answer for answer in answers) == len(answers) - 1  # jq is not for HTML


def test_a_folder_of_the_path_may_change_while_documents_are_read(tmp_path: Path) -> None:
    """feedparser tries an optional module with each feed, and a search of changed folders would open them."""
    feed = b"<rss version='2.0'><channel><title>t</title><item><title>Pier</title></item></channel></rss>"

    async def main() -> list[dict[str, Any]]:
        path = [str(tmp_path), *sys.path]
        server = ForkServer("sift.content.extraction:extract", "sift.content.preparation:prepare", path=path)
        answers = []
        try:
            for number in range(3):
                answers.append(await read(server, "application/rss+xml", feed))
                (tmp_path / f"new{number}.py").touch()
        finally:
            await server.aclose()
        return answers

    assert [answer["meta"]["media_type"] for answer in asyncio.run(main())] == ["application/rss+xml"] * 3


@pytest.mark.parametrize("label", ["no-such", "idna", "undefined", "../../etc"])
def test_a_charset_that_is_none_costs_nothing(label: str) -> None:
    async def main() -> dict[str, Any]:
        async with open_server() as server:
            return await read(server, f"text/html; charset={label}", "<p>Größe und Maß</p>".encode("latin-1") * 9)

    assert asyncio.run(main())["meta"]["charset"] == "windows-1252"


def test_trafilatura_falls_back_to_the_same_text_with_few_bytes_of_stop_words() -> None:
    lines = "<p class=share>Share this page with friends of yours</p>" * 3
    text = page(f"{lines}<aside><p>{WORDS * 3}</p></aside><div id=sidebar><p>{WORDS * 2}</p></div>").decode()
    program = (
        "import sys, trafilatura\nfrom trafilatura import external\n{}"
        "print(trafilatura.extract(sys.argv[1], fast=False))\nprint(type(external.JT_STOPLIST).__name__)"
    )
    told = []
    for before in ("", "from sift.content import stopwords; stopwords.thin()\n"):
        command = [sys.executable, "-c", program.format(before), text]
        environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        told.append(done.stdout.rsplit("\n", 2)[:2])
    assert told[0][0] == told[1][0]
    assert "northern pier" in told[0][0]
    assert [kind for _, kind in told] == ["tuple", "StopWords"]
