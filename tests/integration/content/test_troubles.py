"""What is tried again, what is final, and what was late: every kind of trouble with a server is typed."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest

from sift.content.phases import PhaseTimeouts
from sift.errors import TargetBusy
from tests.integration.content.authority import Authority
from tests.integration.content.conftest import LoopbackResolver, OpenPipeline, failure, run
from tests.integration.content.loopback import Loopback, respond

RAW = {"mode": "raw"}


def busy(open_pipeline: OpenPipeline, url: str, **settings: object) -> TargetBusy:
    with pytest.raises(TargetBusy) as caught:
        run(open_pipeline, url, options=RAW, **settings)
    assert (caught.value.code, bool(caught.value.hint)) == ("busy", True)
    return caught.value


class Failing(LoopbackResolver):
    """A resolver that fails as the system's does."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(self._number, "as told")


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504, 520, 521, 522, 523, 524])
def test_a_passing_status(server: Loopback, open_pipeline: OpenPipeline, status: int) -> None:
    server.routes["/a"] = respond(b"later", status=status, headers=("Retry-After: 9",))
    server.routes["/b"] = respond(b"later", status=status)
    first, second = (busy(open_pipeline, server.url(path)) for path in ("/a", "/b"))
    assert (first.status, first.retry_after) == (status, 9.0)
    assert (second.status, second.retry_after) == (status, None)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 410, 418, 451, 500, 501, 505])
def test_a_final_status(server: Loopback, open_pipeline: OpenPipeline, status: int) -> None:
    server.routes["/a"] = respond(b"no", status=status)
    error = failure(open_pipeline, server.url("/a"), options=RAW)
    assert (error.code, error.status, bool(error.hint)) == ("http_error", status, True)


def test_a_500_that_says_when_to_come_back(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(status=500, headers=("Retry-After: 5",))
    server.routes["/b"] = respond(status=500, headers=("Retry-After: soon",))
    server.routes["/c"] = respond(status=404, headers=("Retry-After: 5",))
    assert busy(open_pipeline, server.url("/a")).retry_after == 5.0
    for path in ("/b", "/c"):
        assert failure(open_pipeline, server.url(path), options=RAW).code == "http_error"


def test_a_connection_that_is_refused_or_reset(server: Loopback, open_pipeline: OpenPipeline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    assert "refuses" in busy(open_pipeline, f"http://127.0.0.1:{port}/", guard_allow=f"127.0.0.1:{port}").detail
    server.routes["/at-once"] = [b"<reset>"]
    server.routes["/in-the-head"] = [b"HTTP/1.1 200 X\r\n", b"<reset>"]
    server.routes["/in-the-body"] = [b"HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\nhalf", b"<reset>"]
    for path in ("/at-once", "/in-the-head", "/in-the-body"):
        assert "resets" in busy(open_pipeline, server.url(path)).detail, path


def test_a_connection_that_just_ends(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/cut"] = b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nshort"
    server.routes["/nothing"] = b""
    server.routes["/noise"] = b"\x00\x01\x02 no http\r\n\r\n"
    server.routes["/chunk"] = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    server.routes["/lengths"] = b"HTTP/1.1 200 X\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
    for path in server.routes:
        assert failure(open_pipeline, server.url(path), options=RAW).code == "connect_failed", path


def test_names(open_pipeline: OpenPipeline) -> None:
    assert "name server" in busy(open_pipeline, "http://a.test/", resolver=Failing(socket.EAI_AGAIN)).detail
    for number in (socket.EAI_NONAME, socket.EAI_FAIL):
        assert failure(open_pipeline, "http://a.test/", resolver=Failing(number)).code == "dns_failed"
    empty = LoopbackResolver({"a.test": [[]]})
    assert failure(open_pipeline, "http://a.test/", resolver=empty).code == "dns_failed"


class Slow(LoopbackResolver):
    async def resolve(self, host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return []


def test_a_late_name(open_pipeline: OpenPipeline) -> None:
    for settings in ({"timeouts": PhaseTimeouts(dns=0.1)}, {"deadline_s": 0.3}):
        error = failure(open_pipeline, "http://slow.test/", resolver=Slow(), options=RAW, **settings)
        assert error.code == "timeout"
    error = failure(open_pipeline, "http://slow.test/", resolver=Slow(), options=RAW, timeouts=PhaseTimeouts(dns=0.1))
    assert error.detail == "The host name was not resolved in time."


def test_a_late_connection(open_pipeline: OpenPipeline) -> None:
    """A listener whose queue is full takes no more connections, and does not refuse them either."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
            error = failure(
                open_pipeline,
                f"http://127.0.0.1:{port}/",
                options=RAW,
                guard_allow=f"127.0.0.1:{port}",
                timeouts=PhaseTimeouts(connect=0.3),
            )
        finally:
            for one in waiting:
                one.close()
    assert (error.code, error.detail) == ("timeout", "The server did not take the connection in time.")


def test_a_late_handshake(open_pipeline: OpenPipeline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        error = failure(
            open_pipeline,
            f"https://127.0.0.1:{port}/",
            options=RAW,
            guard_allow=f"127.0.0.1:{port}",
            timeouts=PhaseTimeouts(connect=0.3),
        )
    assert (error.code, error.detail) == ("timeout", "The TLS handshake did not end in time.")


def test_late_headers_and_late_bodies(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/nothing"] = [b"<hang>"]
    server.routes["/head"] = [b"HTTP/1.1 200 X\r\nX-Half", b"<hang>"]
    server.routes["/body"] = [b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nhalf", b"<hang>"]
    late = PhaseTimeouts(read=0.3)
    for path, detail in (
        ("/nothing", "The server did not answer in time."),
        ("/head", "The server did not answer in time."),
        ("/body", "The document did not arrive in time."),
    ):
        error = failure(open_pipeline, server.url(path), options=RAW, timeouts=late)
        assert (error.code, error.detail, bool(error.hint)) == ("timeout", detail, True)


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 X\r\nX-Drip: ", b"HTTP/1.1 200 X\r\n\r\n"], ids=["headers", "body"])
def test_a_drip_ends_with_the_deadline(server: Loopback, open_pipeline: OpenPipeline, start: bytes) -> None:
    """No silence is ever as long as a phase may be silent."""
    server.routes["/drip"] = [start, b"<drip>"]
    error = failure(open_pipeline, server.url("/drip"), options=RAW, deadline_s=0.6)
    assert error.code == "timeout"


def test_the_deadline_is_one_for_all_redirects(server: Loopback, open_pipeline: OpenPipeline) -> None:
    async def pause() -> None:
        await asyncio.sleep(0.25)

    class Pausing(LoopbackResolver):
        async def resolve(self, host: str, port: int) -> Sequence[str]:
            await pause()
            return await super().resolve(host, port)

    for number in range(9):
        server.routes[f"/{number}"] = respond(status=302, headers=(f"Location: /{number + 1}",))
    url = server.url("/0", "site.test")
    assert failure(open_pipeline, url, options=RAW, resolver=Pausing(), deadline_s=1.0).code == "timeout"
    assert len(server.requests) < 9


def test_a_handshake_that_fails(open_pipeline: OpenPipeline, tmp_path: Path) -> None:
    """A server that asks for a certificate of ours, which nobody has."""
    authority = Authority(tmp_path)
    context = authority.serve_as("127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.ca_file)
    server = Loopback(routes={"/a": respond(b"never")}, tls=context)
    try:
        error = failure(
            open_pipeline,
            server.url("/a", scheme="https"),
            options=RAW,
            guard_allow=server.allow,
            ca_file=str(authority.ca_file),
        )
    finally:
        server.close()
    assert error.code == "tls_failed"
    assert server.requests == []


def test_raw_chinese_characters_are_percent_encoded_and_fetched(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/%E4%B8%AD%E6%96%87?%E9%A1%B5=%E4%B8%80"] = respond(b"found")
    content = run(open_pipeline, server.url("/中文?页=一"), options=RAW)
    assert content.body == b"found"
    assert content.meta["url"] == server.url("/%E4%B8%AD%E6%96%87?%E9%A1%B5=%E4%B8%80")


def test_a_url_that_grows_by_its_encoding(server: Loopback, open_pipeline: OpenPipeline) -> None:
    path = "/" + "中" * 8_000
    server.routes["/" + "%E4%B8%AD" * 8_000] = respond(b"found")
    assert run(open_pipeline, server.url(path), options=RAW).body == b"found"
