"""Whole answers of a gateway: of every status and size, and what is left of them behind: nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import tempfile
from io import FileIO
from pathlib import Path
from typing import IO, Any, cast

import pytest

from sift.errors import TargetFailed, Unavailable
from sift.upstream import MAX_RESPONSE_BYTES
from tests.integration.upstream.conftest import PATIENCE_S, ask, make_request, make_upstream, send
from tests.integration.upstream.stub import USAGE, StubGateway, completion


@pytest.mark.parametrize(("status", "location"), [(404, ""), (500, ""), (307, "Location: /v1/elsewhere"), (204, "")])
def test_any_other_status_is_a_response(stub: StubGateway, folder: Path, status: int, location: str) -> None:
    text = "" if status == 204 else completion("no")
    response, body = ask(stub, folder, {"status": status, "body": text, "headers": [location] if location else []})
    assert (response.status, body.decode()) == (status, text)
    assert response.usage is None
    assert len(stub.received) == 1, "no redirect is followed"


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
