"""A model gateway on loopback that does what each request tells it to, and records what it received."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
_CHUNK = b"x" * 65_536


@dataclass
class Received:
    """A request as it came in. `closed` is set when its client went before it had the whole answer, `answered` when
    it had it."""

    path: str
    headers: list[tuple[str, str]]
    body: bytes
    closed: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)

    def header(self, name: str) -> str | None:
        """The only header of that name."""
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(found) < 2, found
        return found[0] if found else None


class StubGateway:
    """Serves until it is closed, in a thread of its own.

    What it does is in the body of a request, under `stub`, or in `orders` by path; without either it answers a chat
    completion. Orders are `status`, `headers` (a list of lines), `content_type`, `body` (text), `size` (bytes of a
    body that is not kept in memory, with Ollama's counts at its end), `events` (that many events of a stream) with
    `pause` (s) between them, `stall` (answer nothing until the client goes), and `cut`: `before` any answer, in the
    `head`, within the `length` that was announced, within a `chunk`, or by a `reset`. `times` limits an order to the
    first so many requests with the same X-Request-Id; later ones get the plain answer.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.received: list[Received] = []
        self.orders: dict[str, dict[str, Any]] = {}
        self._tls = tls
        self._counts: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()
        self._ready.wait()

    def url(self, path: str = "/v1", host: str = "127.0.0.1") -> str:
        """An address on it."""
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}{path}"

    def close(self) -> None:
        """Stop, and leave whoever still waits without an answer."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _live(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stopped = asyncio.Event()
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request: Received | None = None
        try:
            while (request := await _read(reader)) is not None:
                self.received.append(request)
                order = self._order(request)
                if not await _obey(order, reader, writer):
                    request.closed.set()
                    return
                request.answered.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            if request is not None:
                request.closed.set()
        except asyncio.CancelledError:
            pass  # it is being closed
        finally:
            writer.transport.abort()
            with suppress(OSError):  # TLS that did not end in good order is one
                await writer.wait_closed()

    def _order(self, request: Received) -> dict[str, Any]:
        try:
            told = json.loads(request.body).get("stub") or {}
        except (ValueError, AttributeError):
            told = {}
        order = {**self.orders.get(request.path, {}), **told}
        who = request.header("x-request-id") or ""
        self._counts[who] = self._counts.get(who, 0) + 1
        return {} if self._counts[who] > order.get("times", float("inf")) else order


async def _read(reader: asyncio.StreamReader) -> Received | None:
    """The next request of a connection; None at its end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")[:-2]
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    return Received(first.split(" ")[1], headers, await reader.readexactly(length))


async def _obey(order: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Do it; whether the client stayed until the end."""
    cut = order.get("cut")
    if order.get("stall"):
        await reader.read(1)
        return False
    if cut == "before":
        writer.transport.abort()
        return True
    if "events" in order:
        return await _stream(order, reader, writer)
    if "size" in order:
        return await _send_large(order, writer)
    body = order.get("body", completion()).encode()
    writer.write(_head(order, f"Content-Length: {len(body) + (9 if cut == 'length' else 0)}", "application/json"))
    if cut == "head":
        writer.transport.abort()
        return True
    writer.write(body)
    await writer.drain()
    if cut:
        _cut(writer, cut)
    return True


def completion(text: str = "Forty-one metres.") -> str:
    """A chat completion as the gateway writes it."""
    choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "choices": choices, "usage": USAGE})


def _head(order: dict[str, Any], framing: str, content_type: str) -> bytes:
    lines = [f"HTTP/1.1 {order.get('status', 200)} X", f"Content-Type: {order.get('content_type', content_type)}"]
    return "\r\n".join([*lines, framing, *order.get("headers", []), "", ""]).encode()


async def _stream(order: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(_head(order, "Transfer-Encoding: chunked", "text/event-stream"))
    gone = asyncio.ensure_future(reader.read(1))
    try:
        for number in range(order["events"]):
            last = number == order["events"] - 1
            event = {"choices": [{"index": 0, "delta": {"content": f"{number} "}}], "usage": USAGE if last else None}
            text = b"data: " + json.dumps(event).encode() + b"\n\n"
            writer.write(b"%x\r\n%b\r\n" % (len(text), text))
            await writer.drain()
            await asyncio.wait([gone], timeout=order.get("pause", 0))
            if gone.done():
                return False
        if order.get("cut"):
            _cut(writer, order["cut"])
            return True
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    finally:
        gone.cancel()
    return True


async def _send_large(order: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
    first, last = b'{"response": "', b'", "prompt_eval_count": 7, "eval_count": 9}'
    rest = order["size"] - len(first) - len(last)
    writer.write(_head(order, f"Content-Length: {order['size']}", "application/json") + first)
    while rest > 0:
        writer.write(_CHUNK[:rest])
        rest -= len(_CHUNK)
        await writer.drain()
    writer.write(last)
    await writer.drain()
    return True


def _cut(writer: asyncio.StreamWriter, how: str) -> None:
    if how == "chunk":
        writer.write(b"ff\r\nhalf of a ch")
    if how == "reset":
        writer.transport.abort()
    else:
        writer.close()
