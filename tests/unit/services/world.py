"""A whole sift in memory, with a clock that is set by the test and a site whose answers are."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import itertools
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from sift.blobs.memory import MemoryBlobs
from sift.errors import TargetFailed, Unavailable
from sift.events.memory import MemoryBus
from sift.identity import Identity, Limits
from sift.jobs import ENDED, State
from sift.model_requests import read_request
from sift.queue.kinds import KindQueues
from sift.queue.memory import MemoryQueue
from sift.queue.ports import Received
from sift.services.advance import Advancer
from sift.services.assemble import Assembler
from sift.services.control import Controller
from sift.services.fetching import FetchRunner
from sift.services.inferring import InferenceRunner
from sift.services.keys import KeyService
from sift.services.notices import Notices
from sift.services.purge import Purger
from sift.services.read import Reader
from sift.services.results import Results
from sift.services.retry import Retrier
from sift.services.runner import Runner
from sift.services.submit import Request, Submitted, Submitter
from sift.services.sweep import Report, Sweeper
from sift.services.terms import Terms
from sift.services.work import Worker
from sift.specs import Spec
from sift.store.memory import MemoryStore
from sift.targets import Content
from tests.unit.services.fake_gateway import FakeGateway
from tests.unit.services.faults import Killed, Life, Plan

NOW = 1_796_000_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE
VISIBILITY_SECONDS = 540
ASSEMBLE_VISIBILITY_SECONDS = 720
#: Results files of these tests come in parts that are small.
PART_BYTES = 10_000
LEASE_SECONDS = 100
REQUEST_SECONDS = 75.0

ANN = Identity("acme", "ann", "00000000000a", ("fetch", "inference"))
BOB = Identity("acme", "bob", "00000000000b", ("fetch", "inference"))


class FakeClock:
    """Stands still until it is moved; a wait moves it."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1000)
        await asyncio.sleep(0)


class Site:
    """What the targets answer: `answers` by URL, one for each try, the last one for ever after; `copies` are in
    an archive; `during` runs while
    a URL is being fetched."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Content | BaseException]] = {}
        self.during: dict[str, Callable[[], Awaitable[None]]] = {}
        self.copies: dict[str, Content] = {}
        self.fetched: list[str] = []
        self.deadlines: list[float] = []
        self.options: list[Mapping[str, Any]] = []
        self.at_once: list[frozenset[str]] = []
        self._under_way: set[str] = set()

    async def fetch(
        self, url: str, options: Mapping[str, Any], deadline_s: float, *, gone: TargetFailed | None = None
    ) -> Content:
        if gone is not None:
            if url in self.copies:
                return self.copies[url]
            raise gone
        self.fetched.append(url)
        self.options.append(options)
        self.deadlines.append(deadline_s)
        self._under_way.add(url)
        self.at_once.append(frozenset(self._under_way))
        try:
            if url in self.during:
                await self.during.pop(url)()
            await asyncio.sleep(0)
            answers = self.answers.get(url, [page(url)])
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        finally:
            self._under_way.discard(url)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def page(text: str) -> Content:
    return Content(text.encode(), "text/markdown; charset=utf-8", {"status": 200, "chars": len(text)})


def urls(count: int, start: int = 0) -> list[str]:
    return [f"https://example.com/{number}" for number in range(start, start + count)]


class World:
    """All state is in the ports; `restart` is a new process over the same state."""

    def __init__(
        self,
        *,
        jobs_total: int = 8,
        deadline_seconds: int = 86_400,
        ttl_seconds: int = 3_600,
        limits: Limits | None = None,
        classes: Mapping[str, Limits] | None = None,
    ) -> None:
        self._seeds = itertools.count()
        self.clock = FakeClock()
        self.store = MemoryStore()
        self.queue = MemoryQueue(self.clock, VISIBILITY_SECONDS)
        self.requests = MemoryQueue(self.clock, 10 * VISIBILITY_SECONDS)
        self.gateway = FakeGateway(self.clock)
        self.notices = MemoryQueue(self.clock, 180)
        self.blobs = MemoryBlobs(PART_BYTES)
        self.bus = MemoryBus()
        self.assembly = MemoryQueue(self.clock, ASSEMBLE_VISIBILITY_SECONDS)
        self.site = Site()
        self.limits = limits or Limits(
            targets_per_job=10_000, jobs_per_caller=5, retained_jobs=1_000, job_bytes=1_000_000
        )
        self.limits = dataclasses.replace(self.limits, ttl_seconds=ttl_seconds)
        self.terms = Terms(jobs_total, self.limits, deadline_seconds, classes or {}, ("/v1/*", "/api/*"))
        self.restart()

    def restart(self, plan: Plan | None = None) -> Life:
        """A new process, whose calls meet the faults of the plan."""
        self.life = life = Life(plan)
        store, queue = life.wrap("store", self.store), life.wrap("queue", self.queue)
        blobs, bus = life.wrap("blobs", self.blobs), life.wrap("bus", self.bus)
        notices = Notices(life.wrap("notices", self.notices), self.clock)
        requests = life.wrap("requests", self.requests)
        queues = KindQueues({"fetch": queue, "inference": requests})
        assembly = life.wrap("assembly", self.assembly)
        self.advancer = Advancer(store, queues, blobs, bus, self.clock, notices, assembly=assembly)
        self.submitter = Submitter(store, queues, blobs, self.clock, self.terms)
        self.reader = Reader(store, blobs, self.clock)
        self.controller = Controller(self.reader, self.advancer, store, self.clock)
        self.retrier = Retrier(self.reader, self.submitter)
        self.results = Results(self.reader, store, assembly, self.clock)
        self.assembler = Assembler(
            store, assembly, blobs, self.clock, self.reader.segment, part_bytes=PART_BYTES,
        )  # fmt: skip
        self.keys = KeyService(store, self.clock)
        self.worker = self.make_worker(life)
        self.asker = self.make_asker(life)
        self.sweeper = Sweeper(
            store, queue, self.clock, self.advancer, Purger(store, blobs, self.clock),
            visibility_seconds=VISIBILITY_SECONDS, others={"inference": requests},
        )  # fmt: skip
        return life

    def make_worker(self, life: Life | None = None) -> Worker:
        """One more worker of fetch jobs, of a process of its own unless `life` is given."""
        life = life or Life()
        runner = FetchRunner(self.site.fetch, life.wrap("blobs", self.blobs), self.clock)
        return self._make(life, life.wrap("queue", self.queue), runner)

    def make_asker(self, life: Life | None = None) -> Worker:
        """One more worker of inference jobs."""
        life = life or Life()
        store, blobs = life.wrap("store", self.store), life.wrap("blobs", self.blobs)
        runner = InferenceRunner(self.gateway, store, blobs, self.clock, REQUEST_SECONDS)
        return self._make(life, life.wrap("requests", self.requests), runner)

    def _make(self, life: Life, queue: Any, runner: Runner) -> Worker:
        store, blobs = life.wrap("store", self.store), life.wrap("blobs", self.blobs)
        notices = Notices(life.wrap("notices", self.notices), self.clock)
        bus, assembly = life.wrap("bus", self.bus), life.wrap("assembly", self.assembly)
        advancer = Advancer(store, queue, blobs, bus, self.clock, notices, assembly=assembly)
        return Worker(
            store=store, queue=queue, dead_letters=life.wrap("dead", self.queue), clock=self.clock,
            advancer=advancer, runner=runner, lease_seconds=LEASE_SECONDS,
            random_source=random.Random(next(self._seeds)), notices=notices,
        )  # fmt: skip

    # what a user does

    async def submit(self, count: int = 3, *, who: Identity = ANN, **request: Any) -> Submitted:
        specs = request.pop("targets", None) or [Spec(url) for url in urls(count)]
        return await self.submitter.submit(who, Request(targets=specs, **request))

    async def ask(self, *prompts: str, who: Identity = ANN, model: str | None = None, **request: Any) -> Submitted:
        """An inference job of these prompts."""
        specs = [
            read_request(index, "/v1/completions", model, {"prompt": prompt}) for index, prompt in enumerate(prompts)
        ]
        return await self.submitter.submit(who, Request(targets=specs, **request))

    # what the queue's mapping does

    async def deliver(self, most: int = 10, worker: Worker | None = None, seconds: float = 90.0) -> list[str]:
        """One batch to the worker; the messages that it does not keep are deleted. Answers with the kept ones."""
        return await self._deliver(self.queue, most, worker or self.worker, seconds)

    async def answer(self, most: int = 10, worker: Worker | None = None, seconds: float = 90.0) -> list[str]:
        """As `deliver`, of the requests."""
        return await self._deliver(self.requests, most, worker or self.asker, seconds)

    async def _deliver(self, queue: MemoryQueue, most: int, worker: Worker, seconds: float) -> list[str]:
        batch = [Received(receipt, receipt, m.body, m.receives) for receipt, m in queue.receive(most)]
        kept = await worker.run_batch(batch, lambda: seconds)
        for received in batch:
            if received.message_id not in kept:
                queue.delete(received.receipt)
        return kept

    async def drain(self) -> None:
        """Batches until nothing is visible."""
        while await self.queue.visible() or await self.requests.visible():
            await self.deliver()
            await self.answer()

    async def assemble(self, seconds: float = 120.0) -> list[str]:
        """What there is to be assembled, until nothing is visible; the messages that the assembler kept."""
        kept: list[str] = []
        while found := self.assembly.receive(1):
            batch = [Received(receipt, receipt, m.body, m.receives) for receipt, m in found]
            stays = await self.assembler.run_batch(batch, lambda: seconds)
            for received in batch:
                if received.message_id not in stays:
                    self.assembly.delete(received.receipt)
            kept += stays
        return kept

    async def sweep(self) -> Report:
        return await self.sweeper.sweep(lambda: 55.0)

    async def run_on(self, minutes: int = 60) -> None:
        """Time passes in steps of a second or of a minute, with batches and a sweep a minute, until nothing is live
        or waits to be announced. A process that dies is followed by a new one."""
        for _ in range(minutes):
            try:
                await self.drain()
                await self.sweep()
            except Unavailable:
                pass  # the sweep failed; the next minute is its retry
            except Killed:
                await self.bury_process()
            if self.quiet():
                return
            self.clock.now += MINUTE
        raise AssertionError(f"not quiet after {minutes} minutes: {self.store.states}")

    async def bury_process(self) -> None:
        for _ in range(50):  # what still ran of it finds out that it is dead
            await asyncio.sleep(0)
        self.restart()

    # what a test looks at

    def quiet(self) -> bool:
        sets = [*self.store.live.values(), *self.store.outboxes.values()]
        return not any(sets)

    def state(self, job: Submitted | str) -> State:
        return self.store.states[job if isinstance(job, str) else job.meta.job_id]

    def contents(self) -> Any:
        """Everything that is kept, to compare."""
        kept = dict(vars(self.store))
        return copy.deepcopy(
            (
                kept,
                self.queue.waiting,
                self.requests.waiting,
                self.notices.waiting,
                self.queue.buried,
                self.blobs.blobs,
                self.bus.published,
            )
        )

    def check(self, job_id: str, statuses: Sequence[str] | None = None) -> None:
        """What holds of every job that has ended with all its targets worked on."""
        state = self.state(job_id)
        meta = self.store.metas[job_id]
        outcomes = [self.store.outcomes[job_id, index] for index in range(state.total)]
        assert state.status in ENDED
        assert not state.flight
        assert state.released == state.total == state.done + state.failed
        assert [sum(o.status == word for o in outcomes) for word in ("done", "failed")] == [state.done, state.failed]
        assert state.bytes == sum(outcome.size for outcome in outcomes)
        assert job_id not in self.store.live.get(meta.shard, set())
        assert job_id not in self.store.callers.get(meta.caller, set())
        assert job_id not in self.store.outboxes.get(meta.shard, set())
        assert [detail["job_id"] for _, detail in self.bus.published].count(job_id) >= 1
        if statuses is not None:
            assert [outcome.status for outcome in outcomes] == list(statuses)
