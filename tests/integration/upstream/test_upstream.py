"""One request to a gateway: what is sent, what comes of every kind of answer, and what is left behind: nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import IO, Any, cast

import pytest

from sift.errors import TargetBusy, TargetCut, TargetFailed, Unavailable
from sift.gateway import Gateway, GatewayFailed
from sift.model_requests import UpstreamRequest
from sift.upstream import MAX_RESPONSE_BYTES, Upstream
from tests.integration.content.authority import Authority
from tests.integration.upstream.conftest import IDENTITY, SECRET, make_request, make_upstream
from tests.integration.upstream.stub import USAGE, Received, StubGateway, completion

#: Far longer than anything here takes.
PATIENCE_S = 300.0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where responses are spooled: nothing may be left there."""
    spool = tmp_path / "spool"
    spool.mkdir()
    yield spool
    assert list(spool.iterdir()) == []
    assert [name for name in open_files() if name.startswith(str(spool))] == []


def open_files() -> list[str]:
    found = []
    for descriptor in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        try:
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        except FileNotFoundError:  # the listing's own
            continue
    return found


def send(upstream: Upstream, request: UpstreamRequest, seconds: float = PATIENCE_S) -> tuple[Any, bytes]:
    """The response and its body."""

    async def main() -> tuple[Any, bytes]:
        async with upstream.send(request, seconds) as response:
            assert response.file.tell() == 0
            body = response.file.read()
            assert len(body) == response.size
        assert response.file.closed
        return response, body

    return asyncio.run(main())


def ask(stub: StubGateway, folder: Path, order: dict[str, Any] | None = None, **rest: Any) -> tuple[Any, bytes]:
    body = json.dumps({"model": "m", "stub": order or {}}).encode()
    return send(make_upstream(stub.url(), folder), make_request(body=body), **rest)


def test_a_request_and_its_response(stub: StubGateway, folder: Path) -> None:
    response, body = ask(stub, folder, {"headers": ["X-Request-Id: gw-7"], "content_type": "application/json; x=1"})
    assert (response.status, response.media_type) == (200, "application/json; x=1")
    assert (response.request_id, response.usage, body) == ("gw-7", USAGE, completion().encode())
    (sent,) = stub.received
    assert (sent.path, json.loads(sent.body)["model"]) == ("/v1/chat/completions", "m")
    expected = {
        "authorization": f"Bearer {SECRET}", "content-type": "application/json", "accept-encoding": "identity",
        "accept": "*/*", "user-agent": "sift/0.1.0", "x-request-id": "req_1", "x-sift-service-class": "batch",
        "x-sift-tenant": "acme", "x-sift-actor": "ann", "x-sift-subject": "Ann%20%C3%96.",
        "x-sift-application": "notebook",
    }  # fmt: skip
    assert {name.lower(): value for name, value in sent.headers} == expected | {
        "host": f"127.0.0.1:{stub.port}", "connection": "keep-alive", "content-length": str(len(sent.body)),
    }  # fmt: skip


def test_what_is_not_known_is_left_out(stub: StubGateway, folder: Path) -> None:
    upstream = Upstream(Gateway(stub.url(), None, ssl.create_default_context()), folder)
    response, _ = send(upstream, UpstreamRequest("/v1/x", b"{}", {"tenant": "acme"}, "r"))
    (sent,) = stub.received
    names = {name.lower() for name, _ in sent.headers}
    assert {name for name in names if name.startswith("x-sift")} == {"x-sift-tenant", "x-sift-service-class"}
    assert "authorization" not in names
    assert response.request_id is None


HOSTILE = "a\r\nX-Sift-Actor: root\r\n\r\nGET /evil HTTP/1.1\r\n\x00\u2028\ud800 %0d%0a"


def test_no_value_becomes_another_header(stub: StubGateway, folder: Path) -> None:
    identity = {name: HOSTILE + name for name in IDENTITY}
    send(make_upstream(stub.url(), folder), UpstreamRequest("/v1/x", b"{}", identity, HOSTILE))
    (sent,) = stub.received
    assert sent.path == "/v1/x"
    assert sent.header("x-sift-actor") == (
        "a%0D%0AX-Sift-Actor:%20root%0D%0A%0D%0AGET%20/evil%20HTTP/1.1%0D%0A%00%E2%80%A8?%20%250d%250aactor"
    )
    assert len(sent.headers) == 14


@pytest.mark.parametrize(
    "path",
    [
        "", "v1/x", "//evil.example/x", "@evil.example/x", "/v1/../admin", "/v1/./x", "/v1/x y", "/v1/x\r\nX: y",
        "/v1/é", "/v1/x#y", "/v1/\\x", "https://evil.example/",
    ],
)  # fmt: skip
def test_a_path_that_is_not_what_it_says_is_not_sent(stub: StubGateway, folder: Path, path: str) -> None:
    with pytest.raises(TargetFailed) as caught:
        send(make_upstream(stub.url(), folder), make_request(path))
    assert caught.value.code == "invalid_url"
    assert stub.received == []


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("/v1", "/v1/messages", "/v1/messages"),
        ("/v1/", "/api/chat", "/api/chat"),
        ("", "/api/chat", "/api/chat"),
        ("/llm/v1", "/v1/messages", "/llm/v1/messages"),
        ("/llm", "/api/chat", "/llm/api/chat"),
    ],
)
def test_paths_are_put_behind_the_gateways_root(
    stub: StubGateway, folder: Path, base: str, path: str, expected: str
) -> None:
    send(make_upstream(stub.url(base), folder), make_request(path))
    assert [sent.path for sent in stub.received] == [expected]


@pytest.mark.parametrize(("status", "location"), [(404, ""), (500, ""), (307, "Location: /v1/elsewhere"), (204, "")])
def test_any_other_status_is_a_response(stub: StubGateway, folder: Path, status: int, location: str) -> None:
    text = "" if status == 204 else completion("no")
    response, body = ask(stub, folder, {"status": status, "body": text, "headers": [location] if location else []})
    assert (response.status, body.decode()) == (status, text)
    assert response.usage is None
    assert len(stub.received) == 1, "no redirect is followed"


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


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


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


def test_a_stream_of_events(stub: StubGateway, folder: Path) -> None:
    response, body = ask(stub, folder, {"events": 30})
    assert (response.media_type, body.count(b"data: "), response.usage) == ("text/event-stream", 30, USAGE)


def test_a_large_response(stub: StubGateway, folder: Path) -> None:
    response, body = ask(stub, folder, {"size": 50 * 1024 * 1024})
    assert (response.size, len(body)) == (50 * 1024 * 1024,) * 2
    assert response.usage == {"prompt_eval_count": 7, "eval_count": 9}


def test_the_largest_response(stub: StubGateway, folder: Path) -> None:
    assert ask(stub, folder, {"size": MAX_RESPONSE_BYTES})[0].size == MAX_RESPONSE_BYTES
    with pytest.raises(TargetFailed) as caught:
        ask(stub, folder, {"size": MAX_RESPONSE_BYTES + 1})
    assert caught.value.code == "too_large"
    assert stub.received[1].closed.wait(PATIENCE_S)


def test_a_large_response_that_does_not_say_so(
    stub: StubGateway, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sift.upstream.MAX_RESPONSE_BYTES", 100_000)
    with pytest.raises(TargetFailed) as caught:
        ask(stub, folder, {"events": 10_000})
    assert caught.value.code == "too_large"
    assert stub.received[0].closed.wait(PATIENCE_S)


@pytest.mark.parametrize(("text", "kept"), [("x" * 1000, True), ("x" * 100_000, False)])
def test_what_is_compressed_unasked_is_unpacked_within_the_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, kept: bool
) -> None:
    monkeypatch.setattr("sift.upstream.MAX_RESPONSE_BYTES", 50_000)
    packed = gzip.compress(text.encode())

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(packed)}\r\nContent-Encoding: gzip\r\n\r\n"
        writer.write(head.encode() + packed)
        writer.close()

    async def main() -> bytes:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with make_upstream(f"http://127.0.0.1:{port}", folder).send(make_request(), PATIENCE_S) as response:
                return response.file.read()

    if kept:
        assert asyncio.run(main()).decode() == text
        return
    with pytest.raises(TargetFailed) as caught:
        asyncio.run(main())
    assert caught.value.code == "too_large"


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


def test_a_handshake_that_breaks_off_is_passing(folder: Path) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(100)  # what a client says first is longer
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            async with make_upstream(url, folder).send(make_request(), PATIENCE_S):
                raise AssertionError("nothing has answered")

    with pytest.raises(TargetBusy, match="can't be reached"):
        asyncio.run(main())


def test_what_speaks_no_tls_is_a_failure(folder: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            async with make_upstream(url, folder).send(make_request(), PATIENCE_S):
                raise AssertionError("nothing has answered")

    with pytest.raises(TargetFailed) as caught:
        asyncio.run(main())
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


def test_a_file_is_gone_whatever_is_done_with_the_response(stub: StubGateway, folder: Path) -> None:
    async def main() -> Any:
        async with make_upstream(stub.url(), folder).send(make_request(), PATIENCE_S) as response:
            assert list(folder.iterdir()) == [], "it has no name while it is there, either"
            raise KeyError(response.file)

    with pytest.raises(KeyError) as caught:
        asyncio.run(main())
    assert caught.value.args[0].closed


@pytest.mark.parametrize("order", [{}, {"size": 1_000_000}], ids=["small", "large"])
def test_a_full_disk_is_no_fault_of_the_gateway(
    stub: StubGateway, monkeypatch: pytest.MonkeyPatch, order: dict[str, Any]
) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")

    def open_full(mode: str = "w+b", buffering: int = -1, **_: Any) -> IO[Any]:
        return open("/dev/full", mode, buffering)

    monkeypatch.setattr("tempfile.TemporaryFile", open_full)
    with pytest.raises(Unavailable):
        send(make_upstream(stub.url()), make_request(body=json.dumps({"stub": order}).encode()))


def test_a_disk_that_takes_a_part_at_a_time(stub: StubGateway, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = FileIO.write
    make = tempfile.TemporaryFile

    class Slow(FileIO):
        def write(self, data: Any) -> int:
            return write(self, memoryview(data)[:1_000])

    def open_slow(**arguments: Any) -> IO[Any]:
        with make(**arguments) as file:
            return cast("IO[Any]", Slow(os.dup(file.fileno()), "w+b"))

    monkeypatch.setattr("tempfile.TemporaryFile", open_slow)
    response, body = ask(stub, folder, {"size": 500_000})
    assert (len(body), response.usage) == (500_000, {"prompt_eval_count": 7, "eval_count": 9})


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


def test_proxies_of_the_environment_are_not_used(
    stub: StubGateway, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert ask(stub, folder)[0].status == 200


def test_a_secret_that_can_not_be_used_makes_requests_wait(
    stub: StubGateway, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def unreadable() -> str:
        raise GatewayFailed("its secret could not be read")

    async def hostile() -> str:
        return "token\r\nX-Evil: 1"

    for secret in (unreadable, hostile):
        upstream = Upstream(Gateway(stub.url(), secret, ssl.create_default_context()), folder)
        with pytest.raises(TargetBusy) as caught:
            send(upstream, make_request())
        assert "X-Evil" not in str(caught.value)
    assert stub.received == []
    assert "X-Evil" not in caplog.text


def test_nothing_of_a_request_is_logged(stub: StubGateway, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for order in ({}, {"status": 429}, {"cut": "length"}, {"status": 401}):
        try:
            ask(stub, folder, order)
        except (TargetBusy, TargetCut) as error:
            caplog.records.append(logging.makeLogRecord({"msg": str(error)}))
    # Clients of other tests, which end in the meantime, have their say as well.
    records = [one for one in caplog.records if str(one.name).split(".")[0] not in {"botocore", "boto3", "urllib3"}]
    text = "\n".join(one.getMessage() for one in records)
    assert text
    for told in (SECRET, "notebook", "/v1/chat", str(stub.port), "stub"):
        assert told not in text
        assert not any(told in record.getMessage() for record in caplog.records)
