"""The loop that the simulator runs on."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator

import pytest

from tests.simulation.loop import Standstill, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    with contextlib.closing(VirtualLoop()) as loop:
        yield loop


def test_time_passes_only_when_nothing_else_does(loop: VirtualLoop) -> None:
    told = []

    async def tell(after: float) -> None:
        await asyncio.sleep(after)
        told.append((after, loop.time()))

    async def story() -> None:
        await asyncio.gather(tell(86_400), tell(0.5), tell(60))

    loop.run_until_complete(story())
    assert [after for after, _ in told] == [0.5, 60, 86_400]
    assert all(now == pytest.approx(after) for after, now in told)


def test_a_call_in_a_thread_is_one_step(loop: VirtualLoop) -> None:
    steps = []

    async def other() -> None:
        steps.append("other")

    async def story() -> None:
        task = asyncio.ensure_future(other())
        await asyncio.to_thread(steps.append, "call")
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)
        await task

    loop.run_until_complete(story())
    assert steps == ["call", "other"]


def test_a_standstill_is_an_error(loop: VirtualLoop) -> None:
    with pytest.raises(Standstill):
        loop.run_until_complete(loop.create_future())


def test_nothing_waits(loop: VirtualLoop) -> None:
    began = time.process_time()
    loop.run_until_complete(asyncio.sleep(10**6))
    assert loop.time() == 10**6
    assert time.process_time() - began < 60
