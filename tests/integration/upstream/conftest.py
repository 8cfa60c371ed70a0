"""The stub of a gateway, and an upstream that talks to it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from sift.gateway import Gateway
from sift.model_requests import UpstreamRequest
from sift.upstream import Upstream
from tests.integration.upstream.stub import StubGateway

SECRET = "sk-gateway-secret"
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
