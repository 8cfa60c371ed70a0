"""Pacers of one host in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from benchmarks.pacing import LIMITS
from sift.services.pace import Pacer
from sift.store.memory import MemoryStore
from tests.simulation.loop import VirtualLoop

HOST = "example.com"
NOW = 1_796_000_000_000


class Clock:
    """The time of the loop."""

    def now_ms(self) -> int:
        return NOW + round(asyncio.get_running_loop().time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(story: Coroutine[Any, Any, None]) -> None:
    """In virtual time."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(story)
    finally:
        loop.close()


def pacers(count: int = 1) -> tuple[MemoryStore, list[Pacer]]:
    store = MemoryStore()
    return store, [Pacer(store, Clock(), LIMITS) for _ in range(count)]
