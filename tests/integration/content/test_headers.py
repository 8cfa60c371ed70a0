"""What is sent with a request: our own headers, the caller's, and cookies; and conditional requests."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sift.errors import TargetBusy, TargetFailed
from sift.targets import FetchOptions
from tests.integration.content.authority import Authority
from tests.integration.content.conftest import LoopbackResolver, OpenPipeline, failure, play, run
from tests.integration.content.loopback import Loopback, respond
from tests.integration.content.loopback2 import Answer2, Loopback2

TOKEN, COOKIE = "Bearer s3cret-token", "session=s3cret-session"
CREDENTIALS = {"Authorization": TOKEN, "Cookie": COOKIE}


def sent(server: Loopback) -> list[dict[str, str]]:
    """The headers of each request, by lower-case name; a repeated one would fail."""
    found = []
    for head in server.requests:
        lines = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:] if line]
        names = [name.lower() for name, _ in lines]
        assert len(names) == len(set(names))
        found.append({name.lower(): value for name, value in lines})
    return found


def options(**headers: str) -> dict[str, Any]:
    return {"mode": "raw", "headers": {name.replace("_", "-"): value for name, value in headers.items()}}


@pytest.fixture
def other() -> Iterator[Loopback]:
    server = Loopback(routes={"/b": respond(b"there")})
    yield server
    server.close()


def test_our_own_headers(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(b"there")
    run(open_pipeline, server.url("/a", "site.test"), options=options(), user_agent="sift/0.1 (+https://example.com)")
    (headers,) = sent(server)
    assert set(headers) == {"host", "user-agent", "accept", "accept-language", "accept-encoding"}
    assert headers["user-agent"] == "sift/0.1 (+https://example.com)"


def test_the_callers_headers_win_and_follow_redirects(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=302, headers=("Location: /b",))
    server.routes["/b"] = respond(b"there")
    asked = options(
        ACCEPT="application/json", User_Agent="mine/1", Accept_Language="de", Referer="https://example.com/", DNT="1"
    )
    run(open_pipeline, server.url("/a"), options=asked)
    for headers in sent(server):
        assert headers["accept"] == "application/json"
        assert headers["user-agent"] == "mine/1"
        assert (headers["accept-language"], headers["referer"], headers["dnt"]) == ("de", "https://example.com/", "1")
        assert headers["accept-encoding"] == "gzip, br, zstd, deflate"
        assert headers["host"] == f"127.0.0.1:{server.port}"


def test_credentials_stay_while_the_origin_does(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=307, headers=(f"Location: http://SITE.test.:{server.port}/b",))
    server.routes["/b"] = respond(b"there")
    run(open_pipeline, server.url("/a", "site.test"), options=options(**CREDENTIALS))
    assert [(h["authorization"], h["cookie"]) for h in sent(server)] == [(TOKEN, COOKIE)] * 2


@pytest.mark.parametrize("host", ["other.test", "sub.site.test", "site.test.other.test", "127.0.0.1"])
def test_credentials_do_not_go_to_another_host(server: Loopback, open_pipeline: OpenPipeline, host: str) -> None:
    server.routes["/a"] = respond(status=302, headers=(f"Location: {server.url('/b', host)}",))
    server.routes["/b"] = respond(b"there")
    run(open_pipeline, server.url("/a", "site.test"), options=options(**CREDENTIALS, Accept="text/plain"))
    first, second = sent(server)
    assert first["authorization"] == TOKEN
    assert {"authorization", "cookie"} & second.keys() == set()
    assert second["accept"] == "text/plain"
    assert "s3cret" not in str(second)


def test_credentials_do_not_go_to_another_port(server: Loopback, other: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=302, headers=(f"Location: {other.url('/b', 'site.test')}",))
    run(
        open_pipeline,
        server.url("/a", "site.test"),
        options=options(**CREDENTIALS),
        guard_allow=f"{server.allow},{other.allow}",
    )
    assert "s3cret" not in str(sent(other))


def test_credentials_do_not_come_back(server: Loopback, open_pipeline: OpenPipeline) -> None:
    """Whoever was in between may have chosen where it comes back to."""
    server.routes["/a"] = respond(status=302, headers=(f"Location: {server.url('/b', 'other.test')}",))
    server.routes["/b"] = respond(status=302, headers=(f"Location: {server.url('/c', 'site.test')}",))
    server.routes["/c"] = respond(b"there")
    run(open_pipeline, server.url("/a", "site.test"), options=options(**CREDENTIALS))
    assert ["authorization" in headers for headers in sent(server)] == [True, False, False]


@pytest.mark.parametrize("down", [True, False])
def test_credentials_do_not_change_the_scheme(
    server: Loopback, open_pipeline: OpenPipeline, tmp_path: Path, down: bool
) -> None:
    authority = Authority(tmp_path)
    secure = Loopback(tls=authority.serve_as("site.test"))
    first, second = (secure, server) if down else (server, secure)
    schemes = ("https", "http") if down else ("http", "https")
    first.routes["/a"] = respond(status=302, headers=(f"Location: {second.url('/b', 'site.test', schemes[1])}",))
    second.routes["/b"] = respond(b"there")
    try:
        run(
            open_pipeline,
            first.url("/a", "site.test", schemes[0]),
            options=options(**CREDENTIALS),
            guard_allow=f"{server.allow},{secure.allow}",
            ca_file=str(authority.ca_file),
        )
    finally:
        secure.close()
    assert sent(first)[0]["authorization"] == TOKEN
    assert "s3cret" not in str(sent(second))


@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
def test_credentials_are_never_written_down(
    open_pipeline: OpenPipeline, tmp_path: Path, caplog: pytest.LogCaptureFixture, protocol: str
) -> None:
    """Not in any log at any level, not in what is known of a document, not in an error."""
    caplog.set_level(logging.DEBUG)
    authority = Authority(tmp_path)
    server: Loopback | Loopback2
    if protocol == "HTTP/2":
        server = Loopback2(
            authority.serve_as("site.test", alpn=("h2",)),
            {
                "/ok": Answer2(b"ok"),
                "/busy": Answer2(status="503"),
                "/bad": Answer2(headers=[("content-encoding", "br")]),
            },
        )
    else:
        server = Loopback(
            {
                "/ok": respond(b"ok"),
                "/busy": respond(status=503),
                "/bad": respond(b"x", headers=("Content-Encoding: br",)),
            },
            tls=authority.serve_as("site.test"),
        )
    told: list[str] = []

    async def main() -> None:
        async with open_pipeline(guard_allow=server.allow, ca_file=str(authority.ca_file)) as pipeline:
            for path in ("/ok", "/busy", "/bad", "/none"):
                url = f"https://site.test:{server.port}{path}"
                try:
                    content = await pipeline.run(url, FetchOptions(mode="raw", headers=CREDENTIALS), 20.0)
                    told.append(json.dumps(content.meta))
                except TargetFailed as error:
                    told.append(f"{error.code} {error.detail} {error.hint} {error.meta} {error!r}")
                except TargetBusy as error:
                    told.append(f"{error.code} {error.detail} {error.hint} {error!r}")

    play(main())
    server.close()
    assert len(server.requests) == 4
    assert "s3cret" in str(server.requests), "they were sent"
    assert "s3cret" not in "".join(told) + caplog.text


def test_cookies_live_within_one_target(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=302, headers=("Location: /b", "Set-Cookie: seen=1; Path=/"))
    server.routes["/b"] = respond(b"there")

    async def main() -> None:
        async with open_pipeline() as pipeline:
            await pipeline.run(server.url("/a", "site.test"), FetchOptions(mode="raw"), 30.0)
            await pipeline.run(server.url("/b", "site.test"), FetchOptions(mode="raw"), 30.0)

    play(main())
    assert [headers.get("cookie") for headers in sent(server)] == [None, "seen=1", None]


@pytest.mark.parametrize(
    ("cookie", "host", "path", "back"),
    [
        ("a=1", "www.site.test", "/b", "a=1"),
        ("a=1", "other.test", "/b", None),
        ("a=1", "sub.www.site.test", "/b", None),
        ("a=1; Domain=site.test", "www.site.test", "/b", "a=1"),
        ("a=1; Domain=site.test", "else.site.test", "/b", "a=1"),
        ("a=1; Domain=.site.test", "site.test", "/b", "a=1"),
        ("a=1; Domain=site.test", "other.test", "/b", None),
        ("a=1; Domain=other.test", "other.test", "/b", None),
        ("a=1; Domain=test", "www.site.test", "/b", None),
        ("a=1; Path=/x", "www.site.test", "/b", None),
        ("a=1; Path=/x", "www.site.test", "/x/b", "a=1"),
        ("a=1; Secure", "www.site.test", "/b", None),
        ("a=1; Max-Age=0", "www.site.test", "/b", None),
        ("a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "www.site.test", "/b", None),
        ("a=1; HttpOnly; SameSite=Strict", "www.site.test", "/b", "a=1"),
        ("a", "www.site.test", "/b", "a"),
        ("", "www.site.test", "/b", None),
    ],
)
def test_whom_a_cookie_goes_to(
    server: Loopback, open_pipeline: OpenPipeline, cookie: str, host: str, path: str, back: str | None
) -> None:
    location = f"Location: {server.url(path, host)}"
    server.routes["/a"] = respond(status=302, headers=(location, f"Set-Cookie: {cookie}"))
    server.routes[path] = respond(b"there")
    run(open_pipeline, server.url("/a", "www.site.test"), options=options())
    assert sent(server)[1].get("cookie") == back


def test_no_cookie_is_for_a_whole_country(server: Loopback, open_pipeline: OpenPipeline) -> None:
    location = f"Location: {server.url('/b', 'other.co.uk')}"
    server.routes["/a"] = respond(status=302, headers=(location, "Set-Cookie: a=1; Domain=co.uk"))
    server.routes["/b"] = respond(b"there")
    run(open_pipeline, server.url("/a", "site.co.uk"), options=options())
    assert "cookie" not in sent(server)[1]


def test_a_cookie_of_odd_bytes_comes_back_as_it_was(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=302, headers=("Location: /b", "Set-Cookie: a=\xfc\x80;".encode("latin-1")))
    server.routes["/b"] = respond(b"there")
    run(open_pipeline, server.url("/a"), options=options())
    assert b"\r\nCookie: a=\xfc\x80\r\n" in server.requests[1]


def test_the_sites_cookies_join_the_callers(server: Loopback, open_pipeline: OpenPipeline) -> None:
    cookies = ("Set-Cookie: seen=2", "Set-Cookie: more=3")
    server.routes["/a"] = respond(status=302, headers=("Location: /b", *cookies))
    server.routes["/b"] = respond(status=302, headers=(f"Location: {server.url('/c', 'other.test')}",))
    server.routes["/c"] = respond(b"there")
    run(open_pipeline, server.url("/a", "site.test"), options=options(Cookie="own=0; seen=1"))
    first, second, third = (headers.get("cookie") for headers in sent(server))
    assert (first, third) == ("own=0; seen=1", None)
    assert second is not None
    assert sorted(second.split("; ")) == ["more=3", "own=0", "seen=2"]


def test_validators_are_told_and_a_condition_that_holds_is_no_failure(
    server: Loopback, open_pipeline: OpenPipeline
) -> None:
    tag, date = 'W/"33a64df5"', "Wed, 21 Oct 2026 07:28:00 GMT"

    def answer(path: str, head: bytes) -> bytes:
        known = f"If-None-Match: {tag}".encode() in head or b"If-Modified-Since" in head
        headers = (f"ETag: {tag}", f"Last-Modified: {date}")
        return respond(b"" if known else b"# There\n", status=304 if known else 200, headers=headers)

    server.routes["/a"] = answer
    server.routes["/moved"] = respond(status=301, headers=("Location: /a",))
    first = run(open_pipeline, server.url("/moved"), options={"mode": "raw"}).meta
    assert (first["etag"], first["last_modified"], first["not_modified"]) == (tag, date, False)
    for condition in ({"If-None-Match": first["etag"]}, {"If-Modified-Since": first["last_modified"]}):
        for more in ({"mode": "raw"}, {"mode": "article"}, {"pages": "2"}):
            content = run(open_pipeline, server.url("/moved"), options={**more, "headers": condition})
            assert (content.body, content.media_type) == (b"", "text/plain; charset=utf-8")
            meta = content.meta
            assert (meta["status"], meta["not_modified"], meta["bytes"], meta["etag"]) == (304, True, 0, tag)
            assert meta["final_url"] == server.url("/a")
            assert set(meta) == set(first)
    changed = run(open_pipeline, server.url("/a"), options=options(If_None_Match='"old"'))
    assert (changed.body, changed.meta["status"]) == (b"# There\n", 200)


def test_a_304_that_nobody_asked_for_is_an_error(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=304)
    error = failure(open_pipeline, server.url("/a"), options=options(Accept="text/html"))
    assert (error.code, error.status) == ("http_error", 304)


@pytest.mark.parametrize("tag", ["", "\xfc", '"' + "x" * 5_000 + '"'])
def test_a_validator_that_can_not_be_sent_back_is_not_told(
    server: Loopback, open_pipeline: OpenPipeline, tag: str
) -> None:
    server.routes["/a"] = respond(b"there", headers=(b"ETag: " + tag.encode("latin-1"),))
    assert run(open_pipeline, server.url("/a"), options=options()).meta["etag"] is None


def test_headers_go_to_whom_the_guard_admits_only(server: Loopback, open_pipeline: OpenPipeline) -> None:
    names = LoopbackResolver({"private.test": [["10.0.0.1"]]})
    failure(open_pipeline, "http://private.test/", options=options(**CREDENTIALS), resolver=names)
    assert server.connections == 0
