"""HTTP/2 from a real server: the same limits and the same errors as over HTTP/1.1."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sift.content.client import FetchLimits
from sift.content.phases import PhaseTimeouts
from tests.integration.content.authority import Authority
from tests.integration.content.conftest import OpenPipeline, failure, run
from tests.integration.content.loopback2 import Answer2, Loopback2


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def server2(authority: Authority) -> Iterator[Loopback2]:
    server = Loopback2(authority.serve_as("site.test", "other.test", alpn=("h2", "http/1.1")))
    yield server
    server.close()


@pytest.fixture
def settings(server2: Loopback2, authority: Authority) -> dict[str, Any]:
    return {"guard_allow": server2.allow, "ca_file": str(authority.ca_file), "options": {"mode": "raw"}}


def test_a_request_and_its_redirects(server2: Loopback2, open_pipeline: OpenPipeline, settings: dict[str, Any]) -> None:
    cookie = ("set-cookie", "seen=1; Path=/; Secure")
    server2.routes["/a"] = Answer2(status="302", headers=[("location", "/中文"), cookie])
    server2.routes["/%E4%B8%AD%E6%96%87"] = Answer2(
        gzip.compress(b"text " * 99), headers=[("content-encoding", "gzip")]
    )
    content = run(open_pipeline, server2.url("/a", "site.test"), user_agent="sift/test", **settings)
    assert content.body == b"text " * 99
    first, second = server2.requests
    assert (first[":authority"], first[":scheme"], first["user-agent"]) == (
        f"site.test:{server2.port}",
        "https",
        "sift/test",
    )
    assert ("cookie" in first, second["cookie"]) == (False, "seen=1")
    assert {"host", "connection", "transfer-encoding", "te"} & first.keys() == set()
    assert server2.connections == 2


def test_a_body_larger_than_any_window(
    server2: Loopback2, open_pipeline: OpenPipeline, settings: dict[str, Any]
) -> None:
    body = bytes(range(256)) * 16_000
    server2.routes["/a"] = Answer2(body)
    assert run(open_pipeline, server2.url("/a", "site.test"), **settings).body == body


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer2(b"no", "404"), "http_error"),
        (Answer2(b"half", act="reset"), "connect_failed"),
        (Answer2(status="", act="reset"), "connect_failed"),
        (Answer2(b"half", act="goaway"), "connect_failed"),
        (Answer2(b"half", act="cut"), "connect_failed"),
        (Answer2(b"half", headers=[("content-length", "99")]), "connect_failed"),
        (Answer2(b"x", "soon"), "connect_failed"),
        (Answer2(b"x" * 600_000), "too_large"),
        (Answer2(gzip.compress(bytes(2_000_000)), headers=[("content-encoding", "gzip")]), "too_large"),
        (Answer2(headers=[("x-long", "a" * 20_000), ("x-more", "b" * 4_000)]), "too_large"),
        (Answer2(headers=[(f"x-{number}", "a" * 10_000) for number in range(9)]), "too_large"),
        (Answer2(status="302", headers=[("location", "https://169.254.169.254/")]), "blocked_address"),
        (Answer2(b"half", act="hang"), "timeout"),
        (Answer2(status="", act="hang"), "timeout"),
    ],
)
def test_errors_and_limits(
    server2: Loopback2, open_pipeline: OpenPipeline, settings: dict[str, Any], answer: Answer2, code: str
) -> None:
    server2.routes["/a"] = answer
    error = failure(
        open_pipeline,
        server2.url("/a", "site.test"),
        limits=FetchLimits(wire_bytes=500_000, decoded_bytes=1_000_000, header_bytes=22_000),
        timeouts=PhaseTimeouts(read=2.0),
        **settings,
    )
    assert error.code == code


@pytest.mark.parametrize("raw", [b"\x00" * 100, b"HTTP/1.1 200 OK\r\n\r\n", b"\xff" * 70_000])
def test_what_is_no_http2(
    server2: Loopback2, open_pipeline: OpenPipeline, settings: dict[str, Any], raw: bytes
) -> None:
    server2.raw = raw
    assert failure(open_pipeline, server2.url("/a", "site.test"), **settings).code == "connect_failed"
