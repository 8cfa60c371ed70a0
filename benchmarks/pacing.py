"""What pacing costs and holds: eight workers and several jobs on one host, in virtual time.

`.venv/bin/python -m benchmarks.pacing`
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sift.blobs.memory import MemoryBlobs
from sift.errors import TargetBusy
from sift.events.memory import MemoryBus
from sift.identity import Identity, Limits
from sift.pacing import PaceLimits
from sift.queue.memory import MemoryQueue
from sift.queue.ports import Received
from sift.services.advance import Advancer
from sift.services.fetching import FetchRunner
from sift.services.pace import Pacer
from sift.services.submit import Request, Submitter
from sift.services.terms import Terms
from sift.services.work import Worker
from sift.specs import Spec
from sift.store.memory import MemoryStore
from sift.targets import Content
from tests.simulation.loop import VirtualLoop

LIMITS = PaceLimits(2, 4)
WORKERS = 8
BATCH = 10
JOBS = 4
TARGETS = 100
EPOCH_MS = 1_796_000_000_000
WRITES = ("claim_tickets", "slow_host", "hold_lane", "free_lane")

#: Seconds that a fetch takes, by its number.
Durations = Callable[[int], float]


@dataclass
class Course:
    """What happened: when each fetch began (s), how many were under way at once at most, deliveries of each target,
    and calls to the table about hosts."""

    starts: list[float] = field(default_factory=list)
    most_at_once: int = 0
    deliveries: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    statuses: list[str] = field(default_factory=list)
    now: int = 0

    @property
    def writes(self) -> int:
        """Writes to the items of hosts, refused ones included."""
        return sum(self.calls[name] for name in WRITES)

    def most_in(self, seconds: float) -> int:
        """The most fetches that began within so many seconds."""
        starts = sorted(self.starts)
        return max(sum(begin <= other < begin + seconds for other in starts) for begin in starts)


class _Clock:
    def now_ms(self) -> int:
        return EPOCH_MS + round(asyncio.get_running_loop().time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Table:
    """A table that takes a while for each call, and counts those about hosts."""

    def __init__(self, store: MemoryStore, course: Course, chance: random.Random) -> None:
        self._store = store
        self._course = course
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if name in WRITES or name == "get_pace":
                self._course.calls[name] += 1
                await asyncio.sleep(self._chance.uniform(0.002, 0.02))
            return await method(*args, **kwargs)

        return call


def _left(end: float) -> float:
    return end - asyncio.get_running_loop().time()


def play(
    durations: Durations, *, workers: int = WORKERS, jobs: int = JOBS, targets: int = TARGETS, batch: int = BATCH,
    busy: Mapping[int, float] | None = None, seed: int = 1,
) -> Course:  # fmt: skip
    """All jobs to their end. `busy`: fetches, by their number, that are answered with 429 and so many seconds."""
    loop, course = VirtualLoop(), Course()
    try:
        loop.run_until_complete(_play(course, durations, workers, jobs, targets, batch, busy or {}, seed))
    finally:
        loop.close()
    return course


async def _play(
    course: Course, durations: Durations, workers: int, jobs: int, targets: int, batch: int,
    busy: Mapping[int, float], seed: int,
) -> None:  # fmt: skip
    chance, clock, store, blobs = random.Random(seed), _Clock(), MemoryStore(), MemoryBlobs()
    queue = MemoryQueue(clock)
    limits = Limits(targets_per_job=9_000, jobs_per_caller=jobs, retained_jobs=1_000, job_bytes=2**30)
    submitter = Submitter(store, queue, blobs, clock, Terms(jobs, limits, 86_400))

    async def fetch(url: str, options: Mapping[str, Any], deadline_s: float, *, gone: Any = None) -> Content:
        number = len(course.starts)
        course.starts.append(asyncio.get_running_loop().time())
        course.now += 1
        course.most_at_once = max(course.most_at_once, course.now)
        try:
            await asyncio.sleep(min(durations(number), deadline_s))
        finally:
            course.now -= 1
        if number in busy:
            raise TargetBusy("It answered 429.", status=429, retry_after=busy[number])
        return Content(b"A page.", "text/plain; charset=utf-8")

    async def work() -> None:
        """An execution environment with its pacer, and the poller that calls it."""
        table: Any = _Table(store, course, chance)
        pacer = Pacer(table, clock, LIMITS)
        advancer = Advancer(table, queue, blobs, MemoryBus(), clock, assembly=MemoryQueue(clock))
        worker = Worker(
            store=table, queue=queue, dead_letters=queue, clock=clock, advancer=advancer, lease_seconds=100,
            runner=FetchRunner(fetch, blobs, clock, pacer), pacer=pacer, random_source=chance,
        )  # fmt: skip
        while not store.states or any(state.ended_at is None for state in store.states.values()):
            received = [Received(receipt, receipt, m.body, m.receives) for receipt, m in queue.receive(batch)]
            if not received:
                await asyncio.sleep(chance.uniform(0.05, 0.2))
                continue
            course.deliveries.update(one.body.partition('"url"')[0] for one in received)
            end = asyncio.get_running_loop().time() + 90
            kept = await worker.run_batch(received, functools.partial(_left, end))
            for one in received:
                if one.message_id not in kept:
                    queue.delete(one.receipt)

    for number in range(jobs):
        specs = [Spec(f"https://example.com/{number}/{index}") for index in range(targets)]
        await submitter.submit(Identity("acme", "ann", None), Request(targets=specs))
    await asyncio.gather(*(work() for _ in range(workers)))
    course.statuses = [state.status for state in store.states.values()]


SCENES: Mapping[str, Durations] = {
    "quick pages (0.1 to 1 s)": lambda number: 0.1 + number * 7 % 10 / 11,
    "one of ten is slow (8 s)": lambda number: 8.0 if number % 10 == 0 else 0.5,
    "half are slow (8 s)": lambda number: 8.0 if number % 2 else 0.5,
    "all are slow (6 s)": lambda number: 6.0,
    "all are very slow (20 s)": lambda number: 20.0,
    "slow (6 s), then quick": lambda number: 6.0 if number < 100 else 0.5,
}


def main() -> None:
    print(f"{JOBS} jobs of {TARGETS} targets on one host, {WORKERS} workers with batches of {BATCH}")
    print(f"{LIMITS.rate} a second, {LIMITS.concurrency} at once")
    for name, durations in SCENES.items():
        course = play(durations)
        fetches, took = len(course.starts), max(course.starts)
        print(f"{name}: {fetches} fetches in {took:.0f} s")
        print(f"  at most {course.most_at_once} at once, {course.most_in(10)} in 10 s")
        print(f"  {course.writes / fetches:.2f} writes a fetch ({dict(course.calls)})")
        print(
            f"  {course.deliveries.total() / fetches:.2f} deliveries a fetch, at most {max(course.deliveries.values())}"
        )


if __name__ == "__main__":
    main()
