"""The whole way of one target, over real connections on loopback and with real child processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from sift.content.child import ForkServer
from sift.content.sandbox import ChildLimits
from sift.errors import TargetFailed
from sift.targets import Content, FetchOptions
from tests.integration.content.conftest import OpenPipeline, failure, run
from tests.integration.content.loopback import Loopback, respond
from tests.unit.content.documents import make_encrypted_pdf, make_pdf, make_pdf_bomb

PROSE = "The harbour authority published a long statement on the state of the northern pier this morning. "
PAGE = (
    "<!doctype html><html lang=en><head><title>News</title></head><body><nav>Menu</nav><article>"
    f"<h1>Harbour news</h1><p>{PROSE * 4}</p></article><footer>Imprint of the site</footer></body></html>"
).encode()


def test_an_article(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/news"] = respond(PAGE, content_type="text/html; charset=utf-8")
    content = run(open_pipeline, server.url("/news"), user_agent="sift/test")
    assert content.media_type == "text/markdown; charset=utf-8"
    assert "northern pier" in content.body.decode()
    assert "Imprint" not in content.body.decode()
    meta = content.meta
    assert json.loads(json.dumps(meta)) == meta
    assert (meta["url"], meta["final_url"], meta["status"]) == (server.url("/news"), server.url("/news"), 200)
    assert (meta["media_type"], meta["charset"], meta["language"]) == ("text/html", "utf-8", "en")
    assert (meta["bytes"], meta["chars"]) == (len(PAGE), len(content.body.decode()))
    assert (meta["redirects"], meta["warnings"], meta["truncated"]) == ([], [], False)
    assert meta["fetched_at"].endswith("Z")
    head = server.requests[0].decode()
    assert f"Host: 127.0.0.1:{server.port}\r\n" in head
    assert "User-Agent: sift/test" in head


def test_raw_is_the_bytes_intact(server: Loopback, open_pipeline: OpenPipeline) -> None:
    body = bytes(range(256)) * 10
    server.routes["/raw"] = respond(body, content_type="image/png")
    content = run(open_pipeline, server.url("/raw"), options={"mode": "raw"})
    assert (content.body, content.media_type, content.meta["media_type"]) == (body, "image/png", "image/png")


def test_what_has_no_text_is_unsupported_unless_raw(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/x.png"] = respond(b"\x89PNG\r\n\x1a\n" + bytes(100), content_type="image/png")
    error = failure(open_pipeline, server.url("/x.png"))
    assert (error.code, error.meta["media_type"], error.status) == ("unsupported_media", "image/png", 200)
    assert error.hint


@pytest.mark.parametrize(
    ("body", "content_type", "media_type"),
    [
        (b'{"a": [1, 2.50, "\xc3\xbc"]}', "application/json", "application/json; charset=utf-8"),
        (b"# Title\n", "text/markdown", "text/markdown; charset=utf-8"),
        (b"plain words\n", "text/plain", "text/plain; charset=utf-8"),
        (b"<?xml version='1.0'?><a>b</a>", "application/xml", "application/xml; charset=utf-8"),
    ],
)
def test_other_texts_stay_as_they_are(
    server: Loopback, open_pipeline: OpenPipeline, body: bytes, content_type: str, media_type: str
) -> None:
    server.routes["/d"] = respond(body, content_type=content_type)
    content = run(open_pipeline, server.url("/d"))
    assert (content.body, content.media_type) == (body, media_type)


def test_broken_json_is_damaged(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/d"] = respond(b'{"a": ', content_type="application/json")
    assert failure(open_pipeline, server.url("/d")).code == "damaged"


@pytest.mark.parametrize("content_type", ["text/html", None, "application/octet-stream"])
def test_a_pdf_under_any_name(server: Loopback, open_pipeline: OpenPipeline, content_type: str | None) -> None:
    server.routes["/x"] = respond(make_pdf(["one", "two", "three"]), content_type=content_type)
    content = run(open_pipeline, server.url("/x"), options={"pages": "2-"})
    assert b"%PDF" not in content.body
    assert b"two" in content.body
    assert b"one" not in content.body
    assert content.meta["pages"] == {"total": 3, "returned": "2-3"}
    assert content.meta["media_type"] == "application/pdf"


def test_a_pdf_address_that_answers_a_page(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/x.pdf"] = respond(PAGE, content_type="application/pdf")
    assert run(open_pipeline, server.url("/x.pdf")).meta["media_type"] == "text/html"


def test_pages_that_do_not_fit_are_refused(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/p"] = respond(PAGE)
    server.routes["/x"] = respond(make_pdf(["one"]))
    for path, options in (
        ("/p", {"pages": "1"}),
        ("/x", {"pages": "2"}),
        ("/x", {"pages": "b"}),
        ("/x", {"pages": "1", "mode": "raw"}),
    ):
        error = failure(open_pipeline, server.url(path), options=options)
        assert error.code == "bad_pages"
        assert error.hint


def test_bad_pages_are_told_before_anything_is_fetched(server: Loopback, open_pipeline: OpenPipeline) -> None:
    failure(open_pipeline, server.url("/"), options={"pages": "x"})
    assert server.requests == []


def test_an_encrypted_pdf(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/x"] = respond(make_encrypted_pdf())
    assert failure(open_pipeline, server.url("/x")).code == "encrypted"


def test_a_pdf_bomb_is_a_typed_error_and_the_next_target_is_served(
    server: Loopback, open_pipeline: OpenPipeline
) -> None:
    server.routes["/bomb"] = respond(make_pdf_bomb(600))
    server.routes["/page"] = respond(PAGE)

    async def main() -> None:
        async with open_pipeline(child=ChildLimits(memory_bytes=512 << 20, cpu_s=5)) as pipeline:
            with pytest.raises(TargetFailed) as caught:
                await pipeline.run(server.url("/bomb"), FetchOptions(), 30.0)
            assert caught.value.code in ("too_large", "timeout", "damaged")
            assert (await pipeline.run(server.url("/page"), FetchOptions(), 30.0)).body

    asyncio.run(main())


def test_targets_side_by_side(server: Loopback, open_pipeline: OpenPipeline) -> None:
    for number in range(10):
        server.routes[f"/{number}"] = respond(PAGE.replace(b"Harbour news", b"News %d" % number))

    async def main() -> list[Content]:
        async with open_pipeline() as pipeline:
            return list(
                await asyncio.gather(
                    *(pipeline.run(server.url(f"/{number}"), FetchOptions(mode="page"), 60.0) for number in range(10))
                )
            )

    for number, content in enumerate(asyncio.run(main())):
        assert f"News {number}" in content.body.decode()


def test_redirects_are_followed_and_noted(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=302, headers=("Location: /b?x=1",))
    server.routes["/b?x=1"] = respond(status=308, headers=("Location: c",))
    server.routes["/c"] = respond(PAGE)
    meta = run(open_pipeline, server.url("/a")).meta
    assert meta["redirects"] == [server.url("/a"), server.url("/b?x=1")]
    assert (meta["url"], meta["final_url"]) == (server.url("/a"), server.url("/c"))


def test_chinese_characters_in_the_address(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/%E4%B8%AD%E6%96%87"] = respond(PAGE)
    assert run(open_pipeline, server.url("/中文")).meta["url"] == server.url("/%E4%B8%AD%E6%96%87")


def test_a_gbk_page_declared_as_gb2312(server: Loopback, open_pipeline: OpenPipeline) -> None:
    text = "中文网页的内容必须可以阅读、镕不能出现乱码。" * 20
    page = f'<html><head><meta charset="gb2312"></head><body><article><p>{text}</p></article></body></html>'
    server.routes["/cn"] = respond(page.encode("gbk"), content_type="text/html; charset=gb2312")
    assert "镕" in run(open_pipeline, server.url("/cn")).body.decode()


def test_importing_the_pipeline_loads_no_parser() -> None:
    code = (
        "import sys; sys.path[:] = eval(sys.argv[1]); import sift.content.pipeline; "
        "print([m for m in ('trafilatura', 'lxml', 'turbohtml', 'pypdfium2', 'pypdf', 'resiliparse', "
        "'html_to_markdown') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, repr(sys.path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_running_targets_loads_no_parser_in_the_handler(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(PAGE)
    loaded = set(sys.modules)
    run(open_pipeline, server.url("/a"))
    assert not {"trafilatura", "lxml", "turbohtml", "pypdfium2"} & (set(sys.modules) - loaded)


@pytest.mark.parametrize("code", ["internal", "forbidden", None, 7, ["blocked_address"]])
def test_a_code_that_no_target_ends_with_is_not_believed(
    server: Loopback, open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch, code: Any
) -> None:
    async def claim(*_: Any) -> tuple[dict[str, Any], bytes]:
        claimed = {"code": code, "detail": "It says.", "hint": "Believe it.", "meta": {}}
        return {"error": claimed, "content_type": "text/plain", "meta": {}}, b"its content"

    monkeypatch.setattr(ForkServer, "run", claim)
    server.routes["/page"] = respond(b"<p>A page.")
    error = failure(open_pipeline, server.url("/page"))
    assert (error.code, error.detail) == ("damaged", "The document cannot be read.")
