"""An event loop whose time is virtual: when nothing is ready it jumps to the next timer, and nothing ever waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Standstill(RuntimeError):
    """Everything waits for something that can't happen any more."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Deterministic: callbacks run in the order of their times, then of their making. `time()` is in seconds from 0."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """What the base class takes for a selector: the wait for input and output, of which there is none."""
        if timeout is None:
            raise Standstill("no callback is ready, and no timer is set")
        self._now += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody calls from another thread."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Runs it here and now, so that a call to an adapter is one step."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future
