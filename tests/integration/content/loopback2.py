"""A real HTTP/2 server on loopback, over TLS, whose answers a test writes."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.events

Headers = list[tuple[str, str]]


@dataclass
class Answer2:
    """One answer; `act` is what happens in the place of the body's end: "reset", "goaway", "cut" or "hang"."""

    body: bytes = b""
    status: str = "200"
    headers: Headers = field(default_factory=list)
    act: str = ""


@dataclass
class Loopback2:
    """Serves `routes` by path; `requests` are the headers that came in, `names` what clients asked for by SNI.

    `raw` is sent in the place of any HTTP/2, and the connection closed.
    """

    tls: ssl.SSLContext
    routes: dict[str, Answer2] = field(default_factory=dict)
    requests: list[dict[str, str]] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    connections: int = 0
    host: str = "127.0.0.1"
    port: int = 0
    raw: bytes = b""

    def __post_init__(self) -> None:
        self.tls.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready.set,), daemon=True)
        self._thread.start()
        assert ready.wait(10)

    def url(self, path: str, host: str) -> str:
        return f"https://{host}:{self.port}{path}"

    @property
    def allow(self) -> str:
        return f"{self.host}:{self.port}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _run(self, ready: Callable[[], None]) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().set_exception_handler(lambda *_: None)  # clients that break off are what tests are about
            runner.run(self._serve(ready))

    async def _serve(self, ready: Callable[[], None]) -> None:
        server = await asyncio.start_server(self._talk, self.host, self.port, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        ready()
        await self._stopped.wait()
        server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if self.raw:
                writer.write(self.raw)
                await writer.drain()
                return
            await self._speak(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8", validate_outbound_headers=False)
        )
        state.initiate_connection()
        writer.write(state.data_to_send())
        waiting: dict[int, tuple[bytes, str]] = {}
        while data := await reader.read(65536):
            for event in state.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self._answer(state, event, waiting)
            for stream_id in list(waiting):
                if self._send(state, stream_id, waiting):
                    writer.write(state.data_to_send())
                    writer.transport.abort()
                    return
            writer.write(state.data_to_send())
            await writer.drain()

    def _answer(self, state: Any, event: Any, waiting: dict[int, tuple[bytes, str]]) -> None:
        request = dict(event.headers)
        self.requests.append(request)
        answer = self.routes.get(request[":path"], Answer2(b"nothing here", "404"))
        if answer.status:
            state.send_headers(event.stream_id, [(":status", answer.status), *answer.headers])
        waiting[event.stream_id] = (answer.body, answer.act)

    def _send(self, state: Any, stream_id: int, waiting: dict[int, tuple[bytes, str]]) -> bool:
        """Send as much as the client's window takes; True when the connection is to be cut."""
        body, act = waiting[stream_id]
        while body and (room := min(state.local_flow_control_window(stream_id), state.max_outbound_frame_size)):
            state.send_data(stream_id, body[:room])
            body = body[room:]
        waiting[stream_id] = (body, act)
        if body or act == "hang":
            return False
        del waiting[stream_id]
        if act == "reset":
            state.reset_stream(stream_id, 2)
        elif act == "goaway":
            state.close_connection(error_code=11, last_stream_id=0)
        elif act == "":
            state.end_stream(stream_id)
        return act == "cut"
