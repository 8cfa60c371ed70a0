"""Filters on documents of every kind, over real connections and with real child processes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sift.errors import TargetFailed
from sift.targets import Content, FetchOptions
from tests.integration.content.conftest import OpenPipeline
from tests.integration.content.loopback import Loopback, respond
from tests.unit.content.documents import make_pdf

PROSE = "The harbour authority published a long statement on the state of the northern pier this morning. "
PAGE = (
    "<!doctype html><html lang=en><head><title>News</title></head><body><nav>Menu of the pier</nav><article>"
    f"<h1>Harbour news</h1><p>{PROSE * 4}</p><h2>Ferries</h2><p>Line seven sails at noon. {PROSE}</p>"
    "</article><footer>Imprint of the site</footer></body></html>"
).encode()


def read(open_pipeline: OpenPipeline, url: str, *, settings: dict[str, Any] | None = None, **options: Any) -> Content:
    async def main() -> Content:
        async with open_pipeline(**(settings or {})) as pipeline:
            return await pipeline.run(url, FetchOptions(**options), 60.0)

    return asyncio.run(main())


def failure(open_pipeline: OpenPipeline, url: str, **options: Any) -> TargetFailed:
    with pytest.raises(TargetFailed) as caught:
        read(open_pipeline, url, **options)
    assert caught.value.hint
    return caught.value


def test_grep_reads_what_the_mode_makes_of_a_page(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(PAGE, content_type="text/html; charset=utf-8")
    article = read(open_pipeline, server.url("/a"), grep="seven|pier$|Menu")
    assert (article.media_type, article.meta["matches"]) == ("text/plain; charset=utf-8", 1)
    assert article.meta["chars"] == len(article.body.decode())
    assert (article.meta["title"], article.meta["media_type"]) == ("Harbour news", "text/html")
    assert article.body.decode().partition(": ")[2].startswith("Line seven sails at noon.")
    assert b"Menu of the pier" in read(open_pipeline, server.url("/a"), grep="Menu", mode="page").body
    source = read(open_pipeline, server.url("/a"), grep="<nav>", mode="raw")
    assert source.body.startswith(b"1: <!doctype html>")


def test_grep_shows_the_pages_of_a_pdf(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/x"] = respond(make_pdf(["alpha pier", "beta", "gamma pier"]), content_type="application/pdf")
    for mode in ("auto", "text"):
        content = read(open_pipeline, server.url("/x"), grep="pier", mode=mode)
        text = content.body.decode()
        assert text.splitlines()[0] == "<!-- page 1 -->"
        assert "--\n<!-- page 3 -->\n" in text
        assert content.meta["matches"] == 2
    only = read(open_pipeline, server.url("/x"), grep="pier", pages="2-").body.decode()
    assert "page 1" not in only
    assert "gamma pier" in only


def test_grep_that_finds_nothing_says_what_it_read(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(PAGE)
    error = failure(open_pipeline, server.url("/a"), grep="submarine")
    assert (error.code, error.status, error.meta["title"]) == ("no_match", 200, "Harbour news")


def test_grep_on_what_is_no_text(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/i"] = respond(b"\x89PNG\r\n\x1a\n" + bytes(100), content_type="image/png")
    server.routes["/x"] = respond(make_pdf(["one"]), content_type="application/pdf")
    for path, mode in (("/i", "auto"), ("/i", "raw"), ("/x", "raw")):
        assert failure(open_pipeline, server.url(path), grep="o", mode=mode).code == "unsupported_media"


def test_a_bad_pattern_that_no_submission_checked(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(PAGE)

    async def main() -> None:
        async with open_pipeline() as pipeline:
            await pipeline.run(server.url("/a"), FetchOptions.model_construct(grep="("), 30.0)

    with pytest.raises(TargetFailed) as caught:
        asyncio.run(main())
    assert caught.value.code == "bad_grep"
