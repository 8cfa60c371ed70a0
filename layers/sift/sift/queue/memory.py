"""The queue in memory: at-least-once delivery with visibility, for tests and simulations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sift.clock import Clock
from sift.queue.ports import Sendable


@dataclass
class Waiting:
    """A message in the queue; `visible_at` in milliseconds. Its receipt is its number."""

    body: str
    visible_at: int
    receives: int = 0


class MemoryQueue:
    """`receive` is what the event source mapping does; the rest is the port."""

    def __init__(self, clock: Clock, visibility_seconds: int = 540) -> None:
        self._clock = clock
        self._visibility = visibility_seconds
        self._number = 0
        self.waiting: dict[str, Waiting] = {}
        self.buried: list[tuple[str, str]] = []

    async def send(self, messages: Sequence[Sendable]) -> int:
        for message in messages:
            self.add(message.encode())
        return len(messages)

    async def send_later(self, message: Sendable, seconds: int) -> None:
        self.waiting[self.add(message.encode())].visible_at += seconds * 1000

    def add(self, body: str) -> str:
        """Put any body on the queue."""
        self._number += 1
        self.waiting[str(self._number)] = Waiting(body, self._clock.now_ms())
        return str(self._number)

    def receive(self, most: int) -> list[tuple[str, Waiting]]:
        """Up to `most` visible messages, oldest first, hidden for the visibility timeout."""
        now = self._clock.now_ms()
        ready = [(receipt, m) for receipt, m in self.waiting.items() if m.visible_at <= now][:most]
        for _, message in ready:
            message.visible_at = now + self._visibility * 1000
            message.receives += 1
        return ready

    def delete(self, receipt: str) -> None:
        self.waiting.pop(receipt, None)

    async def set_visibility(self, receipt: str, seconds: int) -> None:
        if receipt in self.waiting:
            self.waiting[receipt].visible_at = self._clock.now_ms() + seconds * 1000

    async def visible(self) -> int:
        now = self._clock.now_ms()
        return sum(1 for message in self.waiting.values() if message.visible_at <= now or not message.receives)

    async def bury(self, body: str, reason: str) -> None:
        self.buried.append((body, reason))
