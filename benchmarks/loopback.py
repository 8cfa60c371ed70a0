"""A web server on loopback for the benchmarks of the pipeline, and a pipeline that may reach it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sift.content.child import ForkServer
from sift.content.pipeline import Pipeline, PipelineSettings

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Answer:
    """What a path answers: status 200, always."""

    body: bytes
    content_type: str
    headers: tuple[str, ...] = ()

    def response(self) -> bytes:
        """Its head."""
        lines = ["HTTP/1.1 200 OK", f"Content-Type: {self.content_type}", f"Content-Length: {len(self.body)}"]
        return "\r\n".join([*lines, *self.headers, "Connection: close", "", ""]).encode()


@asynccontextmanager
async def serve(routes: Mapping[str, Answer]) -> AsyncIterator[int]:
    """Serve `routes` by path; yields the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            found = routes[head.split(b" ", 2)[1].decode()]
            writer.write(found.response())
            writer.write(found.body)
            await writer.drain()
        except ConnectionError:
            pass  # a client that has seen enough
        finally:
            writer.close()

    server = await asyncio.start_server(answer, LOOPBACK, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def open_pipeline(port: int, **settings: Any) -> AsyncIterator[tuple[Pipeline, ForkServer]]:
    """A pipeline that may reach that port on loopback and nothing else, and its fork server."""
    chosen = PipelineSettings(guard_allow=f"{LOOPBACK}:{port}", **settings)
    server = ForkServer(
        "sift.content.extraction:extract",
        "sift.content.preparation:prepare",
        chosen.child,
        parallel=chosen.children,
        output_bytes=chosen.output_bytes,
    )
    pipeline = Pipeline(chosen, extractor=server)
    try:
        yield pipeline, server
    finally:
        await pipeline.aclose()
