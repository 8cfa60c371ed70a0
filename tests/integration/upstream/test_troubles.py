"""A gateway that is busy, away, silent, breaks off or is another: what comes of a request then."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sift.errors import TargetBusy, TargetCut, TargetFailed
from tests.integration.content.authority import Authority
from tests.integration.upstream.conftest import (
    PATIENCE_S,
    ask,
    make_request,
    make_upstream,
    send,
    unused_port,
)
from tests.integration.upstream.stub import Received, StubGateway

FUTURE = "Tue, 31 Dec 2999 23:59:59 GMT"  # a fixed date: it is in the name of a test, which all workers must agree on
PAST = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [
        (429, "7", 7.0), (503, "x", None), (529, "", None), (429, "999999999999", 86_400.0), (503, FUTURE, 86_400.0),
        (503, PAST, 0.0), (429, "-1", None),
    ],
)  # fmt: skip
def test_a_busy_gateway(stub: StubGateway, folder: Path, status: int, header: str, seconds: float | None) -> None:
    with pytest.raises(TargetBusy) as caught:
        ask(stub, folder, {"status": status, "headers": [f"Retry-After: {header}"]})
    assert (caught.value.status, caught.value.retry_after) == (status, seconds)


def test_a_refused_connection_is_busy(folder: Path) -> None:
    with pytest.raises(TargetBusy, match="refuses"):
        send(make_upstream(f"http://127.0.0.1:{unused_port()}/v1", folder), make_request())


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [(socket.EAI_NONAME, TargetFailed, "dns_failed"), (socket.EAI_AGAIN, TargetBusy, "busy")],
)
def test_a_name_without_an_address(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception], code: str
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(number, "no")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(kind) as caught:
        send(make_upstream("http://gateway.example/v1", folder), make_request())
    assert getattr(caught.value, "code", None) == code


@pytest.mark.parametrize(
    "order",
    [
        {"cut": "before"}, {"cut": "head"}, {"cut": "length"}, {"cut": "reset", "events": 3},
        {"cut": "chunk", "events": 3}, {"cut": "end", "events": 3},
    ],
    ids=lambda order: order["cut"],
)  # fmt: skip
def test_an_answer_that_breaks_off(stub: StubGateway, folder: Path, order: dict[str, Any]) -> None:
    with pytest.raises(TargetCut):
        ask(stub, folder, order)
    assert len(stub.received) == 1, "it is sent once"


@pytest.mark.parametrize("order", [{"stall": True}, {"events": 10**6, "pause": 0.05}], ids=["silent", "endless"])
def test_time_is_up(stub: StubGateway, folder: Path, order: dict[str, Any]) -> None:
    with pytest.raises(TargetFailed) as caught:
        ask(stub, folder, order, seconds=3.0)
    assert caught.value.code == "timeout"
    # A machine that is slow enough has not sent it by then.
    assert all(received.closed.wait(PATIENCE_S) for received in stub.received)


def test_a_gateway_that_takes_no_connection(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sift.gateway.CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        others = []
        for _ in range(4):  # the queue of those that wait to be accepted is full
            other = socket.socket()
            other.setblocking(False)
            other.connect_ex(full.getsockname())
            others.append(other)
        try:
            with pytest.raises(TargetBusy, match="can't be reached"):
                send(make_upstream(f"http://127.0.0.1:{full.getsockname()[1]}/v1", folder), make_request())
        finally:
            for other in others:
                other.close()


def ask_over_tls(folder: Path, answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
    """A request over TLS, to what answers so."""

    async def main() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            async with make_upstream(url, folder).send(make_request(), PATIENCE_S):
                raise AssertionError("nothing has answered")

    asyncio.run(main())


def test_a_handshake_that_breaks_off_is_passing(folder: Path) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(100)  # what a client says first is longer
        writer.close()

    with pytest.raises(TargetBusy, match="can't be reached"):
        ask_over_tls(folder, hang_up)


def test_what_speaks_no_tls_is_a_failure(folder: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    with pytest.raises(TargetFailed) as caught:
        ask_over_tls(folder, answer)
    assert caught.value.code == "tls_failed"


async def until(stub: StubGateway) -> Received:
    """The first request, once it is there."""
    async with asyncio.timeout(PATIENCE_S):
        while not stub.received:
            await asyncio.sleep(0.01)
    return stub.received[0]


@pytest.mark.parametrize("order", [{"stall": True}, {"events": 10**6, "pause": 0.05}], ids=["silent", "midway"])
def test_cancelling_closes_the_connection(stub: StubGateway, folder: Path, order: dict[str, Any]) -> None:
    async def main() -> None:
        body = json.dumps({"stub": order}).encode()
        upstream = make_upstream(stub.url(), folder)

        async def wait() -> None:
            async with upstream.send(make_request(body=body), PATIENCE_S):
                raise AssertionError("there is no whole response")

        task = asyncio.ensure_future(wait())
        received = await until(stub)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(received.closed.wait, PATIENCE_S)

    asyncio.run(main())


def test_tls_is_verified(folder: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    stub = StubGateway(authority.serve_as("127.0.0.1"))
    other = StubGateway(authority.serve_as("gateway.example"))
    trusting = ssl.create_default_context(cafile=str(authority.ca_file))
    try:
        response, _ = send(make_upstream(stub.url(), folder, trusting), make_request())
        assert response.status == 200
        for url, tls in ((other.url(), trusting), (stub.url(), None)):
            with pytest.raises(TargetFailed) as caught:
                send(make_upstream(url, folder, tls), make_request())
            assert caught.value.code == "tls_failed"
        assert other.received == []
    finally:
        stub.close()
        other.close()


def test_a_cut_over_tls(folder: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    stub = StubGateway(authority.serve_as("127.0.0.1"))
    tls = ssl.create_default_context(cafile=str(authority.ca_file))
    try:
        for order in ({"cut": "before"}, {"cut": "length"}, {"cut": "reset", "events": 3}):
            body = json.dumps({"stub": order}).encode()
            with pytest.raises(TargetCut):
                send(make_upstream(stub.url(), folder, tls), make_request(body=body))
    finally:
        stub.close()
