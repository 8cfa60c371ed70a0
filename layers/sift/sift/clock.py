"""The one place that reads the time and waits for it."""

from __future__ import annotations

import asyncio
import datetime
import time
from typing import Protocol

#: Two clocks may differ by this much (ms); it is added to every lease and taken off every hand-back.
CLOCK_MARGIN_MS = 5_000


class Clock(Protocol):
    """Time in whole milliseconds since the epoch, and a wait in seconds."""

    def now_ms(self) -> int: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def rfc3339(ms: int) -> str:
    """A time in milliseconds as RFC 3339 in UTC: `2026-11-30T04:09:47.123Z`."""
    moment = datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
