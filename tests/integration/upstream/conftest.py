"""The stub of a gateway, an upstream that talks to it, and where that spools responses."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sift.gateway import Gateway
from sift.model_requests import UpstreamRequest
from sift.upstream import Upstream
from tests.integration.upstream.stub import StubGateway

SECRET = "sk-gateway-secret"
#: Far longer than anything here takes.
PATIENCE_S = 300.0
IDENTITY = {"tenant": "acme", "actor": "ann", "subject": "Ann Ö.", "application": "notebook"}


@pytest.fixture
def stub() -> Iterator[StubGateway]:
    gateway = StubGateway()
    yield gateway
    gateway.close()


def make_upstream(url: str, folder: Path | None = None, tls: ssl.SSLContext | None = None) -> Upstream:
    async def read_secret() -> str:
        return SECRET

    return Upstream(Gateway(url, read_secret, tls or ssl.create_default_context()), folder)


def make_request(path: str = "/v1/chat/completions", body: bytes = b"{}", request_id: str = "req_1") -> UpstreamRequest:
    return UpstreamRequest(path, body, IDENTITY, request_id)


@pytest.fixture
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


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
