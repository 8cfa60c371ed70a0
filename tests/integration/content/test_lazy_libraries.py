"""Pages that lead libraries to what they load late: a child can open no file, so all of it has to be there before."""

from __future__ import annotations

import asyncio

from sift.content.child import ForkServer
from sift.errors import TargetFailed

PROSE = "The harbour authority published a long statement on the state of the northern pier this morning. "
LINKS = "".join(f"<li><a href='/{n}'>Entry {n}</a></li>" for n in range(200))


def html(body: str, head: str = "") -> bytes:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode()


PAGES = {
    "day in a class": html(f"<article><h1>A</h1><p class=date>12 March 2024</p><p>{PROSE * 6}</p></article>"),
    "day in text": html(f"<article><h1>A</h1><p>Last updated on 03/12/2024</p><p>{PROSE * 6}</p></article>"),
    "day in a number": html(f"<article><p>{PROSE * 6}</p><p>20240312</p></article>", "<title>20240312 news</title>"),
    "day in a comment": html(f"<!-- 2024-03-12 --><div id=date>Tuesday 12.03.2024, 10:15</div><p>{PROSE * 6}</p>"),
    "day of a month in French": html(f"<time>le 12 mars 2024</time><p>{PROSE * 6}</p>"),
    "day of something else": html(
        f"<p>{PROSE * 6}</p>",
        '<script type="application/ld+json">{"@type": "Thing", "datePublished": "2024-03-12"}</script>',
    ),
    "little among much": html(f"<ul>{LINKS}</ul><div>{PROSE}</div><ul>{LINKS}</ul>"),
    "text in divisions": html("".join(f"<div><div>{PROSE}</div></div>" for _ in range(20)) + f"<ul>{LINKS}</ul>"),
    "structured data only": html(
        "<p>Loading</p>",
        f'<script type="application/ld+json">{{"@type": "Article", "articleBody": "{PROSE * 5}"}}</script>',
    ),
}


def test_a_child_that_reads_one_page_only_needs_no_file() -> None:
    async def read() -> dict[str, str]:
        server = ForkServer("sift.content.extraction:extract", "sift.content.preparation:prepare")
        head = {"url": "http://a.test/", "content_type": "text/html", "mode": "article", "pages": None}
        ends = {}
        try:
            for name, page in PAGES.items():
                try:
                    answer, content = await server.run({**head, "engine": "pdfium"}, page, 30)
                    ends[name] = "read" if "northern pier" in content.decode() else str(answer)
                except TargetFailed as error:
                    ends[name] = error.code
        finally:
            await server.aclose()
        return ends

    assert asyncio.run(read()) == dict.fromkeys(PAGES, "read")
