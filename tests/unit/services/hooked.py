"""A world in memory with a receiver of webhooks, and the function that posts to it."""

from __future__ import annotations

import asyncio
import functools
import json
import random
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from sift.errors import TargetFailed
from sift.queue.ports import Received
from sift.services.notify import Notifier
from sift.services.webhook_secrets import WebhookSecrets
from sift.webhooks import Delivery
from tests.unit.services.world import HOUR, World

URL = "https://hooks.example.com/sift?token=t0ken"
NOT_THERE = TargetFailed("http_error", "It answered 404.", "Check the URL.", status=404)
ALL = ["job.started", "target.done", "target.failed", "job.ended"]


def awaited(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test with a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def webhook(*events: str, **values: Any) -> dict[str, Any]:
    return {"url": URL, "events": list(events) or ["job.ended"], "headers": {}, "metadata": {}, **values}


@dataclass(frozen=True)
class Answer:
    status: int
    retry_after: float | None = None


@dataclass
class Receiver:
    """Answers what it is told to, the last one for ever after; keeps what was posted."""

    answers: list[Answer | Exception] = field(default_factory=lambda: [Answer(204)])
    posts: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_s: float) -> Answer:
        assert 0 < deadline_s <= 10
        self.posts.append((url, dict(headers), body))
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, _, body in self.posts]


class Hooked:
    """A world with a receiver, and the function that posts to it."""

    def __init__(self) -> None:
        self.world = World()
        self.receiver = Receiver()
        self.dead = self.world.queue
        self.notifier = self.make_notifier()
        self.secret = asyncio.run(WebhookSecrets(self.world.store, self.world.clock).renew("acme", "ann"))

    def make_notifier(self) -> Notifier:
        world = self.world
        return Notifier(
            store=world.store, queue=world.notices, dead_letters=self.dead, poster=self.receiver, clock=world.clock,
            random_source=random.Random(1),
        )  # fmt: skip

    async def post(self, seconds: float = 30.0) -> list[str]:
        """One batch of what is visible; what it does not keep is deleted."""
        notices = self.world.notices
        batch = [Received(receipt, receipt, m.body, m.receives) for receipt, m in notices.receive(10)]
        kept = await self.notifier.run_batch(batch, lambda: seconds)
        for received in batch:
            if received.message_id not in kept:
                notices.delete(received.receipt)
        return kept

    async def post_on(self, hours: float = 30) -> None:
        """Batches until the queue is empty, however long the waits are."""
        end = self.world.clock.now + hours * HOUR
        while self.world.notices.waiting:
            assert self.world.clock.now < end, "it goes on for ever"
            await self.post()
            due = [message.visible_at for message in self.world.notices.waiting.values()]
            self.world.clock.now = max([self.world.clock.now, *([min(due)] if due else [])])

    def delivery(self, job_id: str) -> Delivery | None:
        return self.world.store.deliveries.get(job_id)
