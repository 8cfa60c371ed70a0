"""Servers, pipelines and fork servers for the content tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from sift.content.pipeline import Pipeline, PipelineSettings
from tests.integration.content.loopback import Loopback

OpenPipeline = Callable[..., AbstractAsyncContextManager[Pipeline]]


class LoopbackResolver:
    """Every name is on loopback, unless a table says otherwise; keeps what it was asked."""

    def __init__(self, table: dict[str, list[list[str]]] | None = None) -> None:
        self.table = table or {}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.table.get(host)
        if answers is None:
            return ["127.0.0.1"]
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def server() -> Iterator[Loopback]:
    loopback = Loopback()
    yield loopback
    loopback.close()


@pytest.fixture
def open_pipeline(server: Loopback) -> OpenPipeline:
    """A pipeline that may reach the test's server and nothing else; closed at the end of the `async with`."""

    @asynccontextmanager
    async def open_one(resolver: LoopbackResolver | None = None, **settings: Any) -> AsyncIterator[Pipeline]:
        settings.setdefault("guard_allow", server.allow)
        pipeline = Pipeline(PipelineSettings(**settings), resolver=resolver or LoopbackResolver())
        try:
            yield pipeline
        finally:
            await pipeline.aclose()

    return open_one
