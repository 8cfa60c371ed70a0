"""Redirects over a real server on loopback: each is checked like any address, and nothing else is followed."""

from __future__ import annotations

import pytest

from tests.integration.content.conftest import LoopbackResolver, OpenPipeline, failure, run
from tests.integration.content.loopback import Loopback, respond
from tests.unit.content.guard_table import NAMES, cases

#: No document is to be read, so no child is needed.
RAW = {"mode": "raw"}
BLOCKED = {name: url for name, url, expect in cases() if expect == "block"}
MORE = [
    *("//2130706433/", "//0x7f.1/", "/\\127.0.0.1/", "\\\\127.0.0.1\\", "//public.test\\@127.0.0.1/"),
    *("http://private.test/", "http:/\t/127.0.0.1/", "//[::ffff:a9fe:a9fe]/", "HTTPS://LOCALHOST/", "//127.0.0.1:9/"),
    *("ws://public.test/", "javascript:alert(1)", "//", "http://", "http:///x", "//user:pass@public.test/"),
    *("//[", "http://[::1", "//a\u2100b/", "//?", "http:///#", "https:/public.test/"),
]


def resolver() -> LoopbackResolver:
    """The names of the table, and one more private one; `site.test` is the server's."""
    return LoopbackResolver({name: [answers] for name, answers in NAMES.items()} | {"private.test": [["10.0.0.1"]]})


@pytest.mark.parametrize("location", [*BLOCKED.values(), *MORE], ids=[*BLOCKED, *MORE])
def test_a_redirect_is_checked_like_any_address(server: Loopback, open_pipeline: OpenPipeline, location: str) -> None:
    server.routes["/a"] = respond(status=302, headers=(f"Location: {location}".encode(),))
    names = resolver()
    error = failure(open_pipeline, server.url("/a", "site.test"), resolver=names, options=RAW)
    # Headers with a control character in them never get as far as the guard.
    assert error.code in ("blocked_address", "invalid_url", "connect_failed")
    assert server.paths() == ["/a"]
    assert "meta" not in error.detail
    assert server.connections == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_every_kind_of_redirect_is_followed(server: Loopback, open_pipeline: OpenPipeline, status: int) -> None:
    server.routes["/a"] = respond(status=status, headers=("Location: /b",))
    server.routes["/b"] = respond(b"there", content_type="text/plain")
    content = run(open_pipeline, server.url("/a"), options=RAW)
    assert (content.body, content.meta["redirects"]) == (b"there", [server.url("/a")])


@pytest.mark.parametrize("status", [300, 304, 305, 306])
def test_no_other_status_is_a_redirect(server: Loopback, open_pipeline: OpenPipeline, status: int) -> None:
    server.routes["/a"] = respond(status=status, headers=("Location: /b",))
    error = failure(open_pipeline, server.url("/a"), options=RAW)
    assert (error.code, error.status, server.paths()) == ("http_error", status, ["/a"])


def test_a_redirect_that_leads_nowhere(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(b"gone elsewhere", status=302)
    error = failure(open_pipeline, server.url("/a"), options=RAW)
    assert (error.code, error.status) == ("http_error", 302)


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (b"c", "/x/c"),
        (b"./c", "/x/c"),
        (b"../c?q=1#part", "/c?q=1"),
        (b"/c/%7e%2F", "/c/%7e%2F"),
        (b"?q", "/x/a?q"),
        (b"  /c d ", "/c%20d"),
        ("/grüße".encode(), "/gr%C3%BC%C3%9Fe"),
        ("/grüße".encode("latin-1"), "/gr%FC%DFe"),
        ("/中文?页=1".encode(), "/%E4%B8%AD%E6%96%87?%E9%A1%B5=1"),
        (b"/\xff\xfe<>", "/%FF%FE%3C%3E"),
    ],
)
def test_what_a_location_means(server: Loopback, open_pipeline: OpenPipeline, location: bytes, path: str) -> None:
    server.routes["/x/a"] = respond(status=302, headers=(b"Location: " + location,))
    server.routes[path] = respond(b"there", content_type="text/plain")
    assert run(open_pipeline, server.url("/x/a"), options=RAW).meta["final_url"] == server.url(path)


def test_a_redirect_to_an_international_name(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=302, headers=(f"Location: //bücher.test:{server.port}/b".encode(),))
    server.routes["/b"] = respond(b"there", content_type="text/plain")
    content = run(open_pipeline, server.url("/a"), options=RAW)
    assert content.meta["final_url"] == server.url("/b", "xn--bcher-kva.test")
    assert f"Host: xn--bcher-kva.test:{server.port}".encode() in server.requests[1]


@pytest.mark.parametrize("hops", [10, 11])
def test_ten_redirects_and_no_more(server: Loopback, open_pipeline: OpenPipeline, hops: int) -> None:
    for number in range(hops):
        server.routes[f"/{number}"] = respond(status=301, headers=(f"Location: /{number + 1}",))
    server.routes[f"/{hops}"] = respond(b"there", content_type="text/plain")
    if hops == 10:
        assert len(run(open_pipeline, server.url("/0"), options=RAW).meta["redirects"]) == 10
    else:
        assert failure(open_pipeline, server.url("/0"), options=RAW).code == "too_many_redirects"
        assert len(server.requests) == 11


def test_a_redirect_loop_ends(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=302, headers=("Location: /b",))
    server.routes["/b"] = respond(status=302, headers=("Location: /a",))
    assert failure(open_pipeline, server.url("/a"), options=RAW).code == "too_many_redirects"


def test_a_denied_host_is_no_way_on(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=302, headers=(f"Location: http://sub.denied.test:{server.port}/b",))
    server.routes["/b"] = respond(b"there", content_type="text/plain")
    run(open_pipeline, server.url("/a"), options=RAW)
    error = failure(open_pipeline, server.url("/a"), guard_deny="denied.test", options=RAW)
    assert error.code == "blocked_address"
    assert server.paths() == ["/a", "/b", "/a"]


def test_a_connection_is_not_used_again_after_the_record_has_moved(
    server: Loopback, open_pipeline: OpenPipeline
) -> None:
    names = LoopbackResolver({"flip.test": [["127.0.0.1"], ["169.254.169.254"]]})
    server.routes["/a"] = respond(status=302, headers=("Connection: keep-alive", "Location: /b"))
    server.routes["/b"] = respond(b"there", content_type="text/plain")
    error = failure(open_pipeline, server.url("/a", "flip.test"), resolver=names, options=RAW)
    assert error.code == "blocked_address"
    assert server.paths() == ["/a"]
    assert names.asked == ["flip.test", "flip.test"]


def test_the_name_is_resolved_once_for_one_connection(server: Loopback, open_pipeline: OpenPipeline) -> None:
    names = LoopbackResolver({"flip.test": [["127.0.0.1"], ["169.254.169.254"]]})
    server.routes["/b"] = respond(b"there", content_type="text/plain")
    run(open_pipeline, server.url("/b", "flip.test"), resolver=names, options=RAW)
    assert names.asked == ["flip.test"]
    assert f"Host: flip.test:{server.port}".encode() in server.requests[0]


def test_what_a_page_names_is_not_fetched(server: Loopback, open_pipeline: OpenPipeline) -> None:
    base = server.url("/other")
    server.routes["/a"] = respond(
        f"""<!doctype html><html><head><base href="{base}/"><link rel="canonical" href="{base}/canonical">
        <meta http-equiv="refresh" content="0; url={base}/refresh"><link rel="sitemap" href="{base}/sitemap.xml">
        <meta property="og:image" content="{base}/image"><link rel="stylesheet" href="{base}/style">
        <script src="{base}/script"></script></head><body><iframe src="{base}/frame"></iframe>
        <p>{"Some words that make a paragraph of this page. " * 10}</p><img src="{base}/picture">
        </body></html>""".encode()
    )
    names = LoopbackResolver()
    for mode in ("auto", "page", "text"):
        run(open_pipeline, server.url("/a"), options={"mode": mode}, resolver=names)
    assert set(server.paths()) == {"/a"}
    assert names.asked == []


def test_a_proxy_in_the_environment_is_not_used(
    server: Loopback, open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.routes["/a"] = respond(b"there", content_type="text/plain")
    assert run(open_pipeline, server.url("/a", "site.test"), options=RAW).meta["status"] == 200
    assert server.requests[0].startswith(b"GET /a HTTP/1.1\r\n")
