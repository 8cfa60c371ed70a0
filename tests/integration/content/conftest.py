"""Servers, an archive, pipelines and fork servers for the content tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import pytest

from sift.content.child import ForkServer
from sift.content.pipeline import Pipeline, PipelineSettings
from sift.errors import TargetFailed
from sift.targets import Content, FetchOptions
from tests.integration.content.loopback import Loopback
from tests.integration.content.wayback import Wayback

T = TypeVar("T")
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


class SharedServer(ForkServer):
    """A fork server that outlives the pipelines that use it: loading its libraries takes longer than most tests."""

    async def aclose(self) -> None:
        """It ends with the session."""

    async def end(self) -> None:
        await super().aclose()


class Shared:
    """What the tests that need no fork server of their own work with: one server, and the loop that it belongs to."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        settings = PipelineSettings()
        self.server = SharedServer(
            "sift.content.extraction:extract", "sift.content.preparation:prepare", settings.child,
            parallel=settings.children, output_bytes=settings.output_bytes,
        )  # fmt: skip

    def close(self) -> None:
        self.runner.run(self.server.end())
        self.runner.close()


_shared: list[Shared] = []


@pytest.fixture(scope="session", autouse=True)
def shared() -> Iterator[None]:
    yield
    while _shared:
        _shared.pop().close()


def play(story: Coroutine[Any, Any, T]) -> T:
    """Run it where pipelines share a fork server, see `open_pipeline`."""
    if not _shared:
        _shared.append(Shared())
    return _shared[0].runner.run(story)


def shared_server() -> ForkServer | None:
    """The shared server in a story that is played, else None."""
    found = _shared[0] if _shared else None
    return found.server if found and asyncio.get_running_loop() is found.runner.get_loop() else None


@pytest.fixture
def open_pipeline(server: Loopback) -> OpenPipeline:
    """A pipeline that may reach the test's server and nothing else; closed at the end of the `async with`.

    In a story that is played, its fork server is the shared one, unless the settings have a say in it.
    """

    @asynccontextmanager
    async def open_one(resolver: LoopbackResolver | None = None, **settings: Any) -> AsyncIterator[Pipeline]:
        settings.setdefault("guard_allow", server.allow)
        own = settings.keys() & {"child", "children", "output_bytes"}
        pipeline = Pipeline(
            PipelineSettings(**settings),
            resolver=resolver or LoopbackResolver(),
            extractor=None if own else shared_server(),
        )
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

    return play(main())


def failure(open_pipeline: OpenPipeline, url: str, **settings: Any) -> TargetFailed:
    """What one target fails with."""
    with pytest.raises(TargetFailed) as caught:
        run(open_pipeline, url, **settings)
    return caught.value


@pytest.fixture
def wayback() -> Iterator[Wayback]:
    made = Wayback()
    yield made
    made.server.close()


class Recovery:
    """A pipeline that recovers from the archive, and what became of a target."""

    def __init__(self, server: Loopback, wayback: Wayback, open_pipeline: OpenPipeline) -> None:
        self.server = server
        self.wayback = wayback
        self._open = open_pipeline

    def run(self, url: str, *, deadline_s: float = 20.0, gone: TargetFailed | None = None, **settings: Any) -> Content:
        options = FetchOptions(**{"recover": True, **settings.pop("options", {})})
        allow = f"{self.server.allow},{self.wayback.allow}"
        values = {"archive_api": self.wayback.api, "archive_replay": self.wayback.replay, "guard_allow": allow}

        async def main() -> Content:
            async with self._open(**{**values, **settings}) as pipeline:
                return await pipeline.run(url, options, deadline_s, gone=gone)

        return play(main())

    def fail(self, url: str, **settings: Any) -> TargetFailed:
        with pytest.raises(TargetFailed) as caught:
            self.run(url, **settings)
        return caught.value

    def stands(self, url: str, **settings: Any) -> str:
        """The page's own 404 stands; the one warning that says why."""
        error = self.fail(url, **settings)
        assert (error.code, error.status) == ("http_error", 404)
        (warning,) = error.meta["warnings"]
        assert json.loads(json.dumps(error.meta)) == error.meta
        return str(warning)


@pytest.fixture
def recovery(server: Loopback, wayback: Wayback, open_pipeline: OpenPipeline) -> Recovery:
    return Recovery(server, wayback, open_pipeline)
