"""Bodies over real connections: content codings, and the limits of bytes on the wire and decoded."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest

from sift.content.client import FetchLimits
from tests.integration.content.conftest import OpenPipeline, failure, run
from tests.integration.content.loopback import Loopback, respond

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RAW = {"mode": "raw"}
PAGE = b"The harbour authority published a long statement on the northern pier. " * 50
CODED = {
    "gzip": gzip.compress(PAGE),
    "GZip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE),
    "br": brotli.compress(PAGE),
    "zstd": zstd.compress(PAGE),
    "deflate": zlib.compress(PAGE),
    " deflate": zlib.compress(PAGE)[2:-4],
    "gzip, gzip": gzip.compress(gzip.compress(PAGE)),
    "gzip,br": brotli.compress(gzip.compress(PAGE)),
    "deflate, zstd": zstd.compress(zlib.compress(PAGE)),
    "identity, gzip": gzip.compress(PAGE),
    "utf-8": PAGE,
    "identity": PAGE,
    "": PAGE,
}
MEGABYTES = 64
BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda zeros: gzip.compress(zeros, 1),
    "br": lambda zeros: brotli.compress(zeros, quality=1),
    "zstd": zstd.compress,
    "deflate": lambda zeros: zlib.compress(zeros, 1),
    " deflate": lambda zeros: zlib.compress(zeros, 1)[2:-4],
    "gzip, gzip": lambda zeros: gzip.compress(gzip.compress(zeros, 1)),
    "gzip,br": lambda zeros: brotli.compress(gzip.compress(zeros, 1), quality=1),
}


@pytest.mark.parametrize("coding", CODED)
def test_content_codings(server: Loopback, open_pipeline: OpenPipeline, coding: str) -> None:
    server.routes["/c"] = respond(CODED[coding], headers=(f"Content-Encoding: {coding}",))
    content = run(open_pipeline, server.url("/c"), options=RAW)
    assert (content.body, content.meta["bytes"], content.meta["warnings"]) == (PAGE, len(PAGE), [])


def test_codings_on_lines_of_their_own(server: Loopback, open_pipeline: OpenPipeline) -> None:
    lines = ("Content-Encoding: gzip", "Content-Encoding: br")
    server.routes["/c"] = respond(CODED["gzip,br"], headers=lines)
    assert run(open_pipeline, server.url("/c"), options=RAW).body == PAGE


def test_what_is_asked_for_is_what_is_understood(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/c"] = respond(PAGE)
    run(open_pipeline, server.url("/c"), options=RAW)
    assert b"\r\nAccept-Encoding: gzip, br, zstd, deflate\r\n" in server.requests[0]


def test_in_chunks_and_without_a_length(server: Loopback, open_pipeline: OpenPipeline) -> None:
    packed = CODED["gzip"]
    chunks = [b"%x\r\n%b\r\n" % (len(packed[i : i + 7]), packed[i : i + 7]) for i in range(0, len(packed), 7)]
    head = b"HTTP/1.1 200 X\r\nContent-Encoding: gzip\r\n"
    server.routes["/chunked"] = [head + b"Transfer-Encoding: chunked\r\n\r\n", *chunks, b"0\r\n\r\n"]
    server.routes["/until-close"] = [head + b"Connection: close\r\n\r\n", packed]
    for path in ("/chunked", "/until-close"):
        assert run(open_pipeline, server.url(path), options=RAW).body == PAGE


def test_what_follows_a_compressed_body_is_noted(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/c"] = respond(CODED["gzip"] + b"<!-- cached -->", headers=("Content-Encoding: gzip",))
    content = run(open_pipeline, server.url("/c"), options=RAW)
    assert content.body == PAGE
    assert content.meta["warnings"] == ["Bytes after the end of the compressed document were left out."]


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate", " deflate", "gzip, gzip", "gzip,br"])
def test_a_body_that_breaks_off(server: Loopback, open_pipeline: OpenPipeline, coding: str) -> None:
    server.routes["/c"] = respond(CODED[coding][:-9], headers=(f"Content-Encoding: {coding}",))
    error = failure(open_pipeline, server.url("/c"), options=RAW)
    assert (error.code, bool(error.hint)) == ("damaged", True)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate", "gzip, gzip, gzip", "br, gzip, zstd"])
def test_a_body_that_is_something_else(server: Loopback, open_pipeline: OpenPipeline, coding: str) -> None:
    server.routes["/c"] = respond(PAGE, headers=(f"Content-Encoding: {coding}",))
    error = failure(open_pipeline, server.url("/c"), options=RAW)
    assert (error.code, bool(error.hint)) == ("damaged", True)


@pytest.mark.parametrize("coding", BOMBS)
def test_bombs_of_every_kind(server: Loopback, open_pipeline: OpenPipeline, coding: str) -> None:
    """64 MiB of zeros under the limits as they are; memory stays near the limit, not near the bomb."""
    bomb = BOMBS[coding](bytes(MEGABYTES << 20))
    server.routes["/c"] = respond(bomb, headers=(f"Content-Encoding: {coding}",))
    tracemalloc.start()
    try:
        error = failure(open_pipeline, server.url("/c"), options=RAW)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.code == "too_large"
    assert "decoded" in error.detail
    assert error.hint
    assert peak < 32 << 20


def test_a_length_over_the_limit_is_refused_unread(server: Loopback, open_pipeline: OpenPipeline) -> None:
    length = FetchLimits().wire_bytes + 1
    server.routes["/c"] = [b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n" % length, b"<hang>"]
    error = failure(open_pipeline, server.url("/c"), options=RAW, deadline_s=10.0)
    assert (error.code, "on the wire" in error.detail, bool(error.hint)) == ("too_large", True, True)


@pytest.mark.parametrize("size", [500_000, 500_001])
def test_the_limit_on_the_wire_is_exact(server: Loopback, open_pipeline: OpenPipeline, size: int) -> None:
    server.routes["/long"] = respond(bytes(size))
    server.routes["/no-length"] = [b"HTTP/1.1 200 X\r\n\r\n", bytes(size)]
    limits = FetchLimits(wire_bytes=500_000)
    for path in ("/long", "/no-length"):
        if size == 500_000:
            assert len(run(open_pipeline, server.url(path), options=RAW, limits=limits).body) == size
        else:
            assert failure(open_pipeline, server.url(path), options=RAW, limits=limits).code == "too_large"


@pytest.mark.parametrize("length", [80_000, 300_000])
def test_headers_without_end(server: Loopback, open_pipeline: OpenPipeline, length: int) -> None:
    server.routes["/c"] = respond(b"x", headers=("X-Long: " + "a" * length,))
    assert failure(open_pipeline, server.url("/c"), options=RAW).code == "too_large"
