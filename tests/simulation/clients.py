"""Callers: they submit the same work again and again, lose patience, steer jobs at random, and pry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sift import ids
from sift.errors import CallerBusy, Conflict, Invalid, NotFound, RequestRefused, ServiceBusy, Unavailable
from sift.identity import Identity
from sift.jobs import Kind
from sift.model_requests import read_request
from sift.services.submit import Request, Submitted
from sift.specs import AnySpec, Spec
from tests.simulation.actors import API_SECONDS, ApiProcess
from tests.simulation.invariants import ENDED, broken
from tests.simulation.ledger import RequestKey

if TYPE_CHECKING:
    from tests.simulation.world import World


#: A body of more bytes is too large for a message here.
LARGE_BODY = 100


@dataclass(frozen=True)
class Work:
    """What a caller wants done."""

    urls: tuple[str, ...]  # or paths of requests
    window: int
    kind: Kind = "fetch"
    webhook: Mapping[str, Any] | None = None

    def specs(self) -> list[AnySpec]:
        """Each path is in its body as well, every third time in one that is too large for a message."""
        if self.kind == "fetch":
            return [Spec(url) for url in self.urls]
        bodies = [{"path": path, "more": "x" * (0 if n % 3 else LARGE_BODY)} for n, path in enumerate(self.urls)]
        return [read_request(n, str(body["path"]), None, body) for n, body in enumerate(bodies)]


class Client:
    """One program of a caller; several may share the caller."""

    def __init__(self, world: World, name: str, identity: Identity, works: list[Work]) -> None:
        self._world = world
        self._name = name
        self._me = identity
        self._works = works

    async def run(self) -> None:
        rng = self._world.rng
        mine = [self.submit] * 5 + [self.look] * 3 + [self.cancel, self.pause, self.resume, self.flip, self.flip]
        mine += [self.retry, self.delete, self.pry, self.browse]
        if self._world.scenario.flips:
            mine = [self.submit, self.flip, self.flip, self.look]
        if self._world.scenario.aborts:
            mine = [self.submit, self.submit, self.flip, self.cancel, self.retry, self.look]
        while not self._world.calm:
            await rng.choice(mine)()
            await asyncio.sleep(rng.expovariate(1 / self._world.scenario.pace))

    # how a request is made

    async def _request(self, what: str, make: Callable[[ApiProcess], Coroutine[Any, Any, Any]]) -> Any:
        """The answer, a refusal, or None when none came within the tries that the client has patience for."""
        rng = self._world.rng
        for _ in range(rng.randint(1, 3)):
            api = self._world.api()
            self._world.note(self._name, f"{what} by {api.name}")
            patience = rng.choice([1.0, 10.0, 30.0])
            ending, value = await api.invoke(make(api), API_SECONDS, patience)
            self._world.note(self._name, f"{what}: {ending} {str(value)[:80] if ending == 'raised' else ''}")
            if ending == "returned" or isinstance(value, RequestRefused):
                return value
            await asyncio.sleep(rng.uniform(0, 5))
        return None

    def _some_job(self, *statuses: str) -> str | None:
        """One of this caller's jobs, if there is one; in one of these statuses rather than another."""
        rng, view = self._world.rng, self._world.backend.view()
        jobs = [j for j, job in self._world.checker.ledger.jobs.items() if job.meta.caller == self._me.caller]
        fitting = [j for j in jobs if j in view.states and view.states[j].status in statuses]
        if fitting and rng.random() < 0.9:
            return rng.choice(fitting)
        return rng.choice(jobs) if jobs else None

    # submissions

    async def submit(self) -> None:
        rng = self._world.rng
        work = rng.choice(self._works)
        fresh = rng.random() < 0.15
        explicit = f"key{rng.randint(1, 2)}" if not fresh and rng.random() < 0.2 else None
        request = Request(
            targets=work.specs(), window=work.window, fresh=fresh, idempotency_key=explicit, webhook=work.webhook
        )
        key = (self._me.caller, explicit or work.urls)
        what = f"submit {len(work.urls)} targets{' fresh' if fresh else ''} {explicit or ''}"
        twice = 2 if rng.random() < 0.2 else 1
        sent = [self._request(what, lambda api: self._submit(api, request, key, work.urls)) for _ in range(twice)]
        await asyncio.gather(*sent)

    async def _submit(self, api: ApiProcess, request: Request, key: RequestKey, urls: tuple[str, ...]) -> Submitted:
        return await self._answered(api, key, urls, request.fresh, lambda: api.submitter.submit(self._me, request))

    async def _answered(
        self,
        api: ApiProcess,
        key: RequestKey,
        urls: tuple[str, ...],
        fresh: bool,
        ask: Callable[[], Coroutine[Any, Any, Submitted]],
    ) -> Submitted:
        """The answer to a submission, compared with what stood for it all the while."""
        world, invocation = self._world, api.invocation
        world.requests[invocation] = key, urls
        before = None if fresh else world.checker.standing(key)
        try:
            submitted = await ask()
        except (CallerBusy, ServiceBusy, Conflict) as refusal:
            self._refused(refusal, key, urls, before)
            raise
        job_id = submitted.meta.job_id
        job = world.checker.ledger.jobs.get(job_id)
        if job is None or job.meta.caller != self._me.caller or (urls and job.urls != urls):
            broken("4 idempotency", f"{key} is answered with {job_id}, which is {job}")
        if before is not None and world.checker.stands(before) and (job_id != before or not submitted.reused):
            broken("4 idempotency", f"{key} is answered with {job_id}, and {before} stands for it")
        if (job.key is None) != fresh or (job.key != key and not fresh) or (fresh and submitted.reused):
            broken("4 idempotency", f"{key} (fresh: {fresh}) is answered with {job_id} of {job.key}")
        return submitted

    def _refused(self, refusal: RequestRefused, key: RequestKey, urls: tuple[str, ...], before: str | None) -> None:
        if refusal.code == "idempotency_mismatch":
            other = self._world.checker.ledger.jobs[refusal.extra["job_id"]]
            if other.key != key or other.urls == urls:
                broken("4 idempotency", f"{key} is refused for {other}")
        elif before is not None and self._world.checker.stands(before):
            broken("4 idempotency", f"{before} stands for {key}, and it is refused: {refusal.code}")

    async def retry(self) -> None:
        if (job_id := self._some_job("failed", "partial", "cancelled")) is None:
            return
        key = (self._me.caller, ("retry", job_id))

        async def retry(api: ApiProcess) -> Submitted:
            return await self._answered(api, key, (), False, lambda: api.retrier.retry(self._me, job_id))

        await self._request(f"retry {job_id}", retry)

    # the course of a job

    async def cancel(self) -> None:
        if self._world.rng.random() < 0.5 and (job_id := self._some_job("queued", "running", "pausing", "paused")):
            await self._request(f"cancel {job_id}", lambda api: api.controller.cancel(self._me, job_id))

    async def pause(self) -> None:
        if job_id := self._some_job("queued", "running"):
            await self._request(f"pause {job_id}", lambda api: api.controller.pause(self._me, job_id))

    async def resume(self) -> None:
        if job_id := self._some_job("paused", "pausing"):
            await self._resume(job_id)

    async def _resume(self, job_id: str) -> None:
        async def resume(api: ApiProcess) -> None:
            await api.controller.resume(self._me, job_id)
            self._world.checker.resumed(api.invocation, job_id)

        await self._request(f"resume {job_id}", resume)

    async def flip(self) -> None:
        """Pause and resume in quick turns."""
        rng = self._world.rng
        if not (job_id := self._some_job("queued", "running", "paused", "pausing")):
            return
        for _ in range(rng.randint(1, 4)):
            await self._request(f"pause {job_id}", lambda api: api.controller.pause(self._me, job_id))
            await asyncio.sleep(rng.expovariate(1))
            await self._resume(job_id)
            await asyncio.sleep(rng.expovariate(1))
        await self._resume(job_id)

    async def delete(self) -> None:
        if not (job_id := self._some_job(*sorted(ENDED))):
            return

        async def delete(api: ApiProcess) -> None:
            job = self._world.checker.ledger.jobs[job_id]
            job.deleting += 1
            try:
                await api.controller.delete(self._me, job_id)
            except Conflict:
                job.deleting -= 1
                raise
            state = self._world.backend.view().states.get(job_id)
            if state is not None and not state.expired(self._world.now_ms() + 5_000):
                broken("delete", f"{job_id} is deleted, and can still be read")

        await self._request(f"delete {job_id}", delete)

    # looking

    async def look(self) -> None:
        job_id, rng = self._some_job(), self._world.rng
        if job_id is None:
            return

        async def look(api: ApiProcess) -> None:
            api.reading = True
            try:
                meta, state = await api.reader.job(self._me, job_id)
                if rng.random() < 0.3:
                    await api.reader.wait(self._me, job_id, rng.uniform(0, 5))
                page = await api.reader.page(self._me, job_id, 0, meta.total, lambda slot: True)
                if len(page.slots) != meta.total or page.next_index is not None:
                    broken("reads", f"{job_id} has {meta.total} targets, its page has {len(page.slots)}")
            finally:
                api.reading = False
            now = self._world.backend.view().states.get(job_id)
            if state.status in ENDED and now is not None and now.status != state.status:
                broken("5 terminal status", f"{job_id} read {state.status}, and is {now.status}")

        await self._request(f"look at {job_id}", look)

    async def browse(self) -> None:
        async def browse(api: ApiProcess) -> None:
            api.reading = True
            try:
                jobs, _ = await api.reader.jobs(self._me, None, 5, lambda meta, state: True)
            finally:
                api.reading = False
            if any(meta.caller != self._me.caller for meta, _ in jobs):
                broken("6 foreign", f"{self._me.caller} is shown jobs of others")

        await self._request("list", browse)

    async def pry(self) -> None:
        """Whatever one tries with another caller's job, it is not there; nor is one that never was."""
        rng, ledger = self._world.rng, self._world.checker.ledger
        foreign = [job_id for job_id, job in ledger.jobs.items() if job.meta.caller != self._me.caller]
        job_id = rng.choice([*foreign, ids.new_job_id(self._world.now_ms(), 7)])

        async def pry(api: ApiProcess) -> None:
            tries = [
                lambda: api.reader.job(self._me, job_id),
                lambda: api.reader.page(self._me, job_id, 0, 9, lambda slot: True),
                lambda: api.reader.slot(self._me, job_id, 0),
                lambda: api.reader.wait(self._me, job_id, 1),
                lambda: api.controller.cancel(self._me, job_id),
                lambda: api.controller.pause(self._me, job_id),
                lambda: api.controller.resume(self._me, job_id),
                lambda: api.controller.delete(self._me, job_id),
                lambda: api.retrier.retry(self._me, job_id),
            ]
            for one in tries:
                try:
                    answer = await one()
                except (NotFound, Unavailable):
                    continue
                except (Conflict, Invalid) as refusal:
                    answer = refusal
                broken("6 foreign", f"{self._me.caller} learns of {job_id}: {answer}")

        await self._request(f"pry into {job_id}", pry)
