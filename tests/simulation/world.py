"""One run: everything that a seed stands for, from the first request to the end of the last job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from unittest import mock

from sift import ids
from sift.blobs.ports import UploadLost
from sift.errors import Unavailable
from sift.identity import Identity, Limits
from sift.jobs import Kind
from sift.services import assemble as assembling
from sift.services import inputs, submit, terms
from sift.services.terms import Terms
from tests.simulation.actors import ApiProcess, assemble, sweep_every_minute, work
from tests.simulation.backend import MemoryBackend
from tests.simulation.checker import Checker
from tests.simulation.clients import LARGE_BODY, Client, Work
from tests.simulation.invariants import ENDED, Broken
from tests.simulation.ledger import RequestKey
from tests.simulation.loop import VirtualLoop
from tests.simulation.processes import Effect, Invocation, can_meet
from tests.simulation.scenario import Fault, Quiet, Scenario
from tests.simulation.site import Site, kind_of, make_path, make_url
from tests.simulation.trace import Call, Line, render
from tests.simulation.webhooks import Receivers, make_webhook, notify, secret_of

EPOCH_MS = 1_796_000_000_000
#: What a target of a kind may take at worst, in seconds, when every one of its messages has to come back by itself.
AT_WORST = {"crash": 4_000, "cut": 4_000, "stuck": 4_000, "busy": 1_000, "later": 1_000}
A_TARGET = 300
SCOPES = ("fetch", "inference")
#: A post that waits for its next try: the longest wait, with its jitter, and then some.
A_POST = 9_000
PEOPLE = [Identity("acme", name, f"00000000000{n}", SCOPES) for n, name in enumerate(("ann", "bob", "cid"))]
A_WHILE = 5_400


@dataclass(frozen=True)
class Failure:
    """What went wrong in a run, and how it came to it."""

    seed: int
    invariant: str
    detail: str
    trace: str


class World:
    """`run` it once."""

    def __init__(self, scenario: Scenario, backend: Callable[[Any, random.Random], Any] = MemoryBackend) -> None:
        self.scenario = scenario
        self.rng = random.Random(f"world {scenario.seed}")
        self.loop = VirtualLoop()
        self.trace: list[Line] = []
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.calm = False
        self.workers_stopped = False
        self.all_thawed_at = 0.0
        self.requests: dict[Invocation, tuple[RequestKey, tuple[str, ...]]] = {}
        self.backend = backend(self, self.rng)
        self.site = Site(self)
        self.receivers = Receivers(self)
        self.checker = Checker(self)
        self._broken: Broken | None = None
        self._failed: asyncio.Future[None] = self.loop.create_future()
        self._apis: list[ApiProcess] = []
        self._limits = Limits(
            targets_per_job=10_000, jobs_per_caller=scenario.jobs_per_caller, retained_jobs=1_000,
            job_bytes=scenario.job_bytes, ttl_seconds=scenario.ttl,
        )  # fmt: skip

    # time, chance and what they are written down in

    def now_ms(self) -> int:
        """The true time."""
        return EPOCH_MS + round(self.loop.time() * 1000)

    def note(self, actor: str, what: Any, fault: Fault | None = None) -> None:
        self.trace.append((self.loop.time(), actor, what, fault.name.lower() if fault else ""))

    def draw_fault(self, name: str) -> Fault | None:
        if self.calm or not self.scenario.rates:
            return None
        left = self.rng.random()
        for fault, rate in self.scenario.rates.items():
            left -= rate
            if left < 0:
                return fault if can_meet(fault, name) else None
        return None

    # tasks

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Something that goes on by itself; if it breaks, so does the run."""
        task = self.loop.create_task(coroutine)
        self.tasks[task] = None

        def ended(task: asyncio.Task[Any]) -> None:
            self.tasks.pop(task, None)
            if not task.cancelled() and (error := task.exception()) is not None:
                self.surprised("simulator", error)

        task.add_done_callback(ended)

    def later(self, seconds: float, effect: Effect, remark: str) -> None:
        """A request that is still on its way."""

        async def arrive() -> None:
            await asyncio.sleep(seconds)
            with contextlib.suppress(Unavailable, UploadLost):  # nobody is there to be told
                await effect.take(remark)

        self.spawn(arrive())

    def surprised(self, actor: str, error: BaseException) -> None:
        """A task ended as none should; the first one is the one that counts."""
        if not isinstance(error, Broken):
            text = "".join(traceback.format_exception(error)[-6:])
            error = Broken("unexpected", f"{actor} raised {error!r}\n{text}")
        if self._broken is None:
            self._broken = error
            self._failed.set_result(None)

    async def step(self, effect: Effect, remark: str) -> Any:
        """One effect on the world, checked."""
        reading = effect.looking
        before = self.backend.contents() if reading else None
        answer: Any = None
        try:
            answer = await effect.method(*effect.args, **effect.kwargs)
            if not effect.reads:
                self.backend.refresh()
        except Exception as error:
            answer = error
            raise
        finally:
            call = Call(effect.name, effect.args, effect.kwargs, answer, self.now_ms())
            self.trace.append((self.loop.time(), effect.process.name, call, remark))
        if reading and self.backend.contents() != before:
            raise Broken("8 reads", f"{effect.process.name} changed something while it was reading: {effect.name}")
        self.checker.step(effect, answer)
        return answer

    # who is there

    def api(self) -> ApiProcess:
        """A free process of the API."""
        for api in self._apis:
            if api.free and self.rng.random() < 0.8:
                return api
        scenario, rng = self.scenario, self.rng
        deadline = scenario.short_deadline if rng.random() < 0.3 else scenario.deadline
        terms = Terms(scenario.jobs_total, self._limits, deadline, paths=("/v1/*",))
        api = ApiProcess(self, f"api{len(self._apis) + 1}", terms)
        self._apis.append(api)
        return api

    def _clients(self) -> list[Client]:
        rng, clients, hooks = self.rng, [], random.Random(f"webhooks {self.scenario.seed}")
        number = 0
        works: dict[str, list[Work]] = {}
        for person in PEOPLE:
            for _ in range(rng.randint(1, 4)):
                number += 100
                count = rng.randint(1, self.scenario.max_targets)
                kind: Kind = "inference" if rng.random() < self.scenario.inference else "fetch"
                make = make_url if kind == "fetch" else make_path
                urls = tuple(make(rng, number + n, self.scenario.kinds, self.scenario.trouble) for n in range(count))
                works.setdefault(person.caller, []).append(Work(urls, rng.randint(1, 6), kind, make_webhook(hooks)))
        for n in range(self.scenario.clients):
            person = rng.choice(PEOPLE)
            clients.append(Client(self, f"{person.actor}{n}", person, works[person.caller]))
        return clients

    # the run

    def run(self) -> Failure | None:
        """None when everything held."""
        chance = random.Random(f"secrets {self.scenario.seed}")
        secrets = mock.Mock(
            randbits=chance.getrandbits, randbelow=chance.randrange, token_hex=lambda n: chance.randbytes(n).hex()
        )
        scenario = self.scenario
        random.seed(scenario.seed)
        level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        patches = [
            mock.patch.object(ids, "secrets", secrets),
            mock.patch.object(submit, "secrets", secrets),
            mock.patch.object(assembling, "secrets", secrets),
            mock.patch.object(terms, "JOBS_PER_SHARD", scenario.jobs_per_shard),
            mock.patch.object(submit, "COMMIT_SEGMENTS", 0 if scenario.written_ahead else submit.COMMIT_SEGMENTS),
            mock.patch.object(inputs, "INLINE_BODY_BYTES", LARGE_BODY),
            mock.patch.object(submit, "SEGMENT_INLINE_BYTES", 0 if scenario.targets_in_bucket else 300_000),
        ]
        try:
            for patch in patches:
                patch.start()
            try:
                self.loop.run_until_complete(self._until_failed(self._story()))
            finally:
                self._end()
        finally:
            for patch in patches:
                patch.stop()
            logging.disable(level)
        if self._broken is None:
            return None
        return Failure(scenario.seed, self._broken.invariant, self._broken.detail, render(self.trace))

    async def _until_failed(self, story: Coroutine[Any, Any, None]) -> None:
        self.spawn(self._tell(story))
        await self._failed

    async def _tell(self, story: Coroutine[Any, Any, None]) -> None:
        await story
        if not self._failed.done():
            self._failed.set_result(None)

    def _end(self) -> None:
        while left := asyncio.all_tasks(self.loop):
            # More than once: what cleans up after itself waits for a dead process, for ever.
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()
        self.backend.close()

    async def _story(self) -> None:
        for number in range(self.scenario.workers):
            self.spawn(work(self, "fetch", number + 1))
            self.spawn(work(self, "inference", number + 1))
        self.spawn(sweep_every_minute(self))
        for number in range(2):
            self.spawn(assemble(self, number + 1))
        self.spawn(notify(self))
        for person in PEOPLE:
            await self.backend.store.put_secrets(person.caller, secret_of(person.caller), None)
        for client in self._clients():
            self.spawn(client.run())
        await asyncio.sleep(self.scenario.chaos)
        self.calm = True
        self.note("simulator", f"all is quiet from now on ({self.scenario.quiet.name})")
        await asyncio.sleep(60 + max(0.0, self.all_thawed_at - self.loop.time()))
        if self.scenario.quiet is Quiet.NOTHING_LEFT:
            states = self.backend.view().states
            lost = {(job_id, index) for job_id, state in states.items() for index in state.flight}
            self.checker.ledger.lost_messages |= lost  # a batch that is under way may acknowledge the last one left
            self.backend.lose_all()
        self.workers_stopped = self.scenario.quiet is Quiet.NO_WORKERS
        await self._wind_down()
        await asyncio.sleep(200)
        await self.checker.files.at_the_end()
        self.checker.at_the_end()

    async def _wind_down(self) -> None:
        """Until nothing is live; each job within its time."""
        began = self.loop.time()
        limit = began + A_WHILE + sum(self._at_worst(job_id) for job_id in self.checker.ledger.jobs)
        while True:
            view = self.backend.view()
            live = [state for state in view.states.values() if state.status not in ENDED]
            through = not live and not any(view.outboxes.values()) and not any(view.removing.values())
            if through and not self.backend.notices.waiting:
                return
            for state in live:
                if self.scenario.resume_at_end and state.status == "paused":
                    api, meta = self.api(), view.metas[state.job_id]
                    person = Identity.from_snapshot(meta.identity)
                    self.spawn(api.invoke(api.controller.resume(person, state.job_id), 29))
                overdue = self.now_ms() - state.deadline_at > 300_000
                stands_still = self.loop.time() > limit and state.status in {"queued", "running", "cancelling"}
                if overdue or (stands_still and not self.workers_stopped):
                    raise Broken("7 liveness", f"{state.job_id} is still live: {state}")
            if through and self.loop.time() > limit + A_POST:
                raise Broken("webhooks", f"posted for ever: {list(self.backend.notices.waiting.values())[:3]}")
            if not live and not through and self.loop.time() > limit:
                raise Broken("7 liveness", f"left for the sweeper: {view.outboxes}, {view.removing}")
            await asyncio.sleep(60)

    async def ask_for_file(self, job_id: str) -> None:
        """As the caller of the job would."""
        api, meta = self.api(), self.backend.view().metas[job_id]
        person = Identity(meta.identity["tenant"], meta.identity["actor"], meta.identity["key_id"])
        await api.invoke(api.results.find(person, job_id), 29)

    async def pause(self, seconds: float) -> None:
        """Time passes."""
        await asyncio.sleep(seconds)

    def _at_worst(self, job_id: str) -> int:
        """Seconds that a job's targets may take, one after another."""
        view = self.backend.view()
        state = view.states.get(job_id)
        if state is None or state.status in ENDED:
            return 0
        urls = self.checker.ledger.jobs[job_id].urls
        return sum(AT_WORST.get(kind_of(url)[0], A_TARGET) for url in urls)
