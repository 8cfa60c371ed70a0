"""Documents of every kind through the whole way: over the network, into a child and back."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from sift.content.pipeline import Pipeline
from sift.content.sandbox import ChildLimits
from sift.errors import TargetFailed
from sift.targets import Content, FetchOptions
from tests.integration.content.conftest import OpenPipeline, play
from tests.integration.content.loopback import Loopback, respond
from tests.unit.content.documents import make_pdf
from tests.unit.content.office_documents import (
    ODT_BODY,
    make_docx,
    make_docx_bomb,
    make_encrypted_office,
    make_epub,
    make_large_xlsx,
    make_odf,
    make_pptx,
    make_xlsx,
)

WORDS = "The harbour authority published a statement on the northern pier. "
FEED = (
    "<rss version='2.0'><channel><title>Port</title><item><title>Pier</title><description>{}</description></item>"
    "</channel></rss>"
)
MARKDOWN, PLAIN = "text/markdown; charset=utf-8", "text/plain; charset=utf-8"

#: Body, declared type, type of the content, and what it must hold.
KINDS: dict[str, tuple[bytes, str | None, str, str]] = {
    "docx": (make_docx(), "application/octet-stream", MARKDOWN, "# Harbour report"),
    "xlsx": (make_xlsx(), None, MARKDOWN, "| Port | High | Low |"),
    "pptx": (make_pptx(), "text/html", MARKDOWN, "## First slide"),
    "odt": (make_odf("text", ODT_BODY), "application/zip", MARKDOWN, "# Tides"),
    "epub": (make_epub(), "application/epub+zip", MARKDOWN, "# First"),
    "rtf": (rb"{\rtf1 words}", "application/rtf", MARKDOWN, "words"),
    "pdf": (make_pdf(["words"]), "text/html", MARKDOWN, "words"),
    "csv": (b"a,b\n1,2\n", "text/csv", MARKDOWN, "| a | b |"),
    "json": (b'{"a": 1}', "application/json", "application/json; charset=utf-8", '{"a": 1}'),
    "jsonl": (b'{"a": 1}\n[2]\n', "application/jsonl", "application/x-ndjson; charset=utf-8", "[2]"),
    "xml": (b"<a>b</a>", "application/xml", "application/xml; charset=utf-8", "<a>b</a>"),
    "feed": (FEED.format("News").encode(), "text/xml", MARKDOWN, "## Pier"),
    "sitemap": (b"<urlset><url><loc>https://x.test/</loc></url></urlset>", "text/xml", MARKDOWN, "- <https://x.test/>"),
    "text": (b"words", "text/plain", PLAIN, "words"),
    "markdown": (b"# words", "text/markdown", MARKDOWN, "# words"),
    "html": (b"<h1>Pier</h1><p>words</p>", "text/html", MARKDOWN, "words"),
}
#: One byte that is text of its kind, and a document of about a size.
SIZED: dict[str, tuple[str, Any]] = {
    "text/plain": ("a", lambda size: (WORDS * (size // len(WORDS) + 1))[:size]),
    "text/markdown": ("a", lambda size: (WORDS * (size // len(WORDS) + 1))[:size]),
    "application/json": ("7", lambda size: json.dumps([WORDS] * (size // (len(WORDS) + 4)))),
    "application/x-ndjson": ("7", lambda size: (json.dumps({"a": WORDS}) + "\n") * (size // (len(WORDS) + 10))),
    "text/csv": ("a", lambda size: f"a,{WORDS}\n" * (size // (len(WORDS) + 3))),
    "text/html": ("a", lambda size: f"<p>{WORDS}</p>" * (size // (len(WORDS) + 7))),
    "text/xml": ("a", lambda size: f"<a>{f'<b>{WORDS}</b>' * (size // (len(WORDS) + 7))}</a>"),
    "application/rss+xml": ("a", lambda size: FEED.format(WORDS * (size // len(WORDS)))),
}


def run(open_pipeline: OpenPipeline, url: str, **options: Any) -> Content:
    async def main() -> Content:
        # As much time as a busy machine may want: what takes too long is for other tests.
        async with open_pipeline(extract_s=600.0, child=ChildLimits(cpu_s=600)) as pipeline:
            return await pipeline.run(url, FetchOptions(**options), 1200.0)

    return play(main())


async def fail(pipeline: Pipeline, url: str, **options: Any) -> TargetFailed:
    with pytest.raises(TargetFailed) as caught:
        await pipeline.run(url, FetchOptions(**options), 60.0)
    assert caught.value.hint
    return caught.value


def test_every_kind(server: Loopback, open_pipeline: OpenPipeline) -> None:
    for name, (body, declared, _, _) in KINDS.items():
        server.routes[f"/{name}"] = respond(body, content_type=declared)

    async def main() -> None:
        async with open_pipeline() as pipeline:
            for name, (body, _, media_type, held) in KINDS.items():
                content = await pipeline.run(server.url(f"/{name}"), FetchOptions(), 60.0)
                assert (name, content.media_type) == (name, media_type)
                assert held in content.body.decode()
                assert content.meta["chars"] == len(content.body.decode())
                meta = json.loads((await pipeline.run(server.url(f"/{name}"), FetchOptions(mode="meta"), 60.0)).body)
                assert meta["media_type"] == content.meta["media_type"]
                raw = await pipeline.run(server.url(f"/{name}"), FetchOptions(mode="raw"), 60.0)
                assert raw.body == body
                if name != "pdf":
                    assert (await fail(pipeline, server.url(f"/{name}"), pages="1")).code == "bad_pages"

    play(main())


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"ID3\x04\x00\x00\x00", "audio/mpeg"),
        (b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00", "video/mp4"),
        (b"\x1aE\xdf\xa3\x01\x00", "video/webm"),
        (b"\x7fELF\x02\x01\x01", "application/x-elf"),
        (b"\x93\x8a\x01\x02\x00\x9c", "application/octet-stream"),
    ],
)
def test_what_has_no_text_is_refused_and_raw_gives_its_bytes(
    server: Loopback, open_pipeline: OpenPipeline, body: bytes, media_type: str
) -> None:
    body += random.Random(7).randbytes(5000)
    server.routes["/x"] = respond(body, content_type="text/html")

    async def main() -> None:
        async with open_pipeline() as pipeline:
            for mode in ("auto", "article", "page", "text", "links", "meta"):
                error = await fail(pipeline, server.url("/x"), mode=mode)
                assert (error.code, error.meta["media_type"]) == ("unsupported_media", media_type)
                assert "raw" in error.hint
            assert (await pipeline.run(server.url("/x"), FetchOptions(mode="raw"), 60.0)).body == body

    play(main())


def test_a_protected_document_a_bomb_and_the_next(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/locked"] = respond(make_encrypted_office())
    server.routes["/bomb"] = respond(make_docx_bomb(300))
    server.routes["/sound"] = respond(make_docx())

    async def main() -> None:
        async with open_pipeline() as pipeline:
            assert (await fail(pipeline, server.url("/locked"))).code == "encrypted"
            assert (await fail(pipeline, server.url("/bomb"))).code == "too_large"
            assert (await pipeline.run(server.url("/sound"), FetchOptions(), 60.0)).body

    play(main())


def test_a_sheet_beyond_memory_is_too_large(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/x"] = respond(make_large_xlsx(30_000))

    async def main() -> None:
        async with open_pipeline(extract_s=600.0, child=ChildLimits(cpu_s=600)) as pipeline:
            content = await pipeline.run(server.url("/x"), FetchOptions(), 1200.0)
            assert content.body.count(b"\n") > 30_000
        async with open_pipeline(child=ChildLimits(memory_bytes=400 << 20, cpu_s=600), extract_s=600.0) as pipeline:
            assert (await fail(pipeline, server.url("/x"))).code == "too_large"

    play(main())


@pytest.mark.parametrize("mode", ["raw", "meta"])
def test_modes_without_pages_say_so_before_anything_is_fetched(
    server: Loopback, open_pipeline: OpenPipeline, mode: str
) -> None:
    async def main() -> None:
        async with open_pipeline() as pipeline:
            assert (await fail(pipeline, server.url("/x"), pages="1", mode=mode)).code == "bad_pages"

    play(main())
    assert server.requests == []


@pytest.mark.parametrize("content_type", SIZED)
def test_from_one_byte_to_the_limit(server: Loopback, open_pipeline: OpenPipeline, content_type: str) -> None:
    byte, make = SIZED[content_type]
    large = make(10 * 1024 * 1024 - 1000)
    assert 9_500_000 < len(large) <= 10 * 1024 * 1024
    server.routes["/large"] = respond(large.encode(), content_type=content_type)
    server.routes["/one"] = respond(byte.encode(), content_type=content_type)
    content = run(open_pipeline, server.url("/large"))
    assert len(content.body) > 9_000_000
    content = run(open_pipeline, server.url("/one"), mode="raw")
    assert content.body == byte.encode()
    if not content_type.endswith("xml"):  # one byte is no element
        content = run(open_pipeline, server.url("/one"))
        assert byte in content.body.decode()


def test_links_of_a_page(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/p"] = respond(
        b'<base href="/docs/"><a href="a">A</a> <a href="a">again</a>', content_type="text/html"
    )
    content = run(open_pipeline, server.url("/p"), mode="links")
    assert content.media_type == "application/x-ndjson; charset=utf-8"
    assert json.loads(content.body) == {"url": server.url("/docs/a"), "text": "A"}
