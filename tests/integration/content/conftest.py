"""Servers, pipelines and fork servers for the content tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from sift.content.pipeline import Pipeline, PipelineSettings
from sift.errors import TargetFailed
from sift.targets import Content, FetchOptions
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


def run(open_pipeline: OpenPipeline, url: str, *, deadline_s: float = 30.0, **settings: Any) -> Content:
    """One target through a pipeline of its own; `settings` are the pipeline's, but `options` and `resolver`."""
    options = FetchOptions(**settings.pop("options", {}))

    async def main() -> Content:
        async with open_pipeline(**settings) as pipeline:
            return await pipeline.run(url, options, deadline_s)

    return asyncio.run(main())


def failure(open_pipeline: OpenPipeline, url: str, **settings: Any) -> TargetFailed:
    """What one target fails with."""
    with pytest.raises(TargetFailed) as caught:
        run(open_pipeline, url, **settings)
    return caught.value
