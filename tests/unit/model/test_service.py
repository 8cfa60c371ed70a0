"""A second opinion: the service and a plain model of it, driven side by side by Hypothesis, without faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from sift.errors import RequestRefused, TargetFailed
from sift.identity import Limits
from sift.jobs import counts
from sift.messages import decode
from sift.services.submit import Request
from sift.specs import Spec
from tests.unit.model.model import LIVE, Model, Refused
from tests.unit.services.world import ANN, BOB, World

WHO = {"ann": ANN, "bob": BOB}
URLS = [
    "https://example.com/ok/1",
    "https://example.com/ok/2",
    "https://example.com/fail/3",
    "https://example.com/fail/4",
]
DEADLINE, TTL = 1_800, 600

people = st.sampled_from(sorted(WHO))
works = st.lists(st.sampled_from(URLS), min_size=1, max_size=6).map(tuple)


class Service(RuleBasedStateMachine):
    """Each rule does the same to both; after each, every job reads the same in both."""

    jobs: Bundle[str] = Bundle("jobs")

    @initialize(per_caller=st.integers(1, 3), total=st.integers(1, 4))
    def begin(self, per_caller: int, total: int) -> None:
        limits = Limits(targets_per_job=100, jobs_per_caller=per_caller, retained_jobs=1_000, job_bytes=10**9)
        self._loop = asyncio.new_event_loop()
        self.world = World(jobs_total=total, deadline_seconds=DEADLINE, ttl_seconds=TTL, limits=limits)
        self.model = Model(per_caller, total, DEADLINE, TTL, self.world.clock.now)
        for url in URLS:
            if "fail" in url:
                self.world.site.answers[url] = [TargetFailed("http_error", "It answered 404.", status=404)]

    def teardown(self) -> None:
        if hasattr(self, "_loop"):
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    def _pass(self, milliseconds: int) -> None:
        self.world.clock.now += milliseconds
        self.model.now = self.world.clock.now

    def _both(self, expect: Callable[[], Any], call: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Any, Any]:
        """What the model expects and what the service answers; None twice when both refuse, with the same code."""
        expected = answered = None
        wanted = found = ""
        try:
            expected = expect()
        except Refused as refusal:
            wanted = str(refusal)
        try:
            answered = self._run(call())
        except RequestRefused as refusal:
            found = refusal.code
        assert found == wanted
        return expected, answered

    @rule(
        target=jobs, who=people, work=works, window=st.integers(1, 4), fresh=st.booleans(),
        key=st.sampled_from([None, None, "k1", "k2"]),
    )  # fmt: skip
    def submit(self, who: str, work: tuple[str, ...], window: int, fresh: bool, key: str | None) -> Any:
        caller, explicit = WHO[who].caller, key is not None and not fresh
        name = None if fresh else ("key", key) if key else ("work", *work)
        request = Request([Spec(url) for url in work], window=window, fresh=fresh, idempotency_key=key)
        self._pass(1)
        same, answer = self._both(
            lambda: self.model.submit(caller, work, name, explicit),
            lambda: self.world.submitter.submit(WHO[who], request),
        )
        return self._submitted(same, answer, caller, work, name, explicit)

    def _submitted(
        self, same: str | None, answer: Any, caller: str, work: tuple[str, ...], name: Any, explicit: bool
    ) -> Any:
        if answer is None:
            return multiple()
        job_id = answer.meta.job_id
        assert answer.reused == (same is not None)
        if same is not None:
            assert job_id == same
        else:
            self.model.add(job_id, caller, work, name, explicit)
        return job_id

    @rule(target=jobs, who=people, job_id=jobs)
    def retry(self, who: str, job_id: str) -> Any:
        caller = WHO[who].caller
        left: list[tuple[str, ...]] = []
        name = ("retry", job_id)

        def expect() -> str | None:
            left.append(self.model.retry(caller, job_id))
            before = [one for one in self.model.shown_to(caller) if self.model.jobs[one].key == name]
            return self.model.submit(caller, self.model.jobs[before[0]].urls if before else left[0], name, False)

        self._pass(1)
        same, answer = self._both(expect, lambda: self.world.retrier.retry(WHO[who], job_id))
        return self._submitted(same, answer, caller, left[0] if left else (), name, False)

    @rule(most=st.integers(1, 10))
    def deliver(self, most: int) -> None:
        async def batch() -> None:
            visible = [m for m in self.world.queue.waiting.values() if m.visible_at <= self.world.clock.now]
            messages = [decode(message.body) for message in visible[:most]]
            before = len(self.world.site.fetched)
            kept = await self.world.deliver(most)
            fetched = sum(
                self.model.deliver(m.job_id, m.index, "failed" if "fail" in m.url else "done") for m in messages
            )
            assert kept == []
            assert len(self.world.site.fetched) - before == fetched

        self._run(batch())

    @rule(seconds=st.sampled_from([1, 30, 200, 700, 2_000]))
    def wait(self, seconds: int) -> None:
        """Time passes, with the sweep that comes every minute at its end."""
        self._pass(seconds * 1000)
        report = self._run(self.world.sweep())
        self.model.sweep()
        assert report.failed == []

    @rule(who=people, job_id=jobs)
    def cancel(self, who: str, job_id: str) -> None:
        caller = WHO[who].caller
        self._both(lambda: self.model.cancel(caller, job_id), lambda: self.world.controller.cancel(WHO[who], job_id))

    @rule(who=people, job_id=jobs)
    def pause(self, who: str, job_id: str) -> None:
        caller = WHO[who].caller
        self._both(lambda: self.model.pause(caller, job_id), lambda: self.world.controller.pause(WHO[who], job_id))

    @rule(who=people, job_id=jobs)
    def resume(self, who: str, job_id: str) -> None:
        caller = WHO[who].caller
        self._both(lambda: self.model.resume(caller, job_id), lambda: self.world.controller.resume(WHO[who], job_id))

    @rule(who=people, job_id=consumes(jobs))
    def delete(self, who: str, job_id: str) -> None:
        caller = WHO[who].caller
        self._both(lambda: self.model.delete(caller, job_id), lambda: self.world.controller.delete(WHO[who], job_id))

    @invariant()
    def reads_the_same(self) -> None:
        if not hasattr(self, "world"):
            return
        for who in WHO.values():
            self._run(self._compare(who))

    async def _compare(self, who: Any) -> None:
        shown = self.model.shown_to(who.caller)
        listed, _ = await self.world.reader.jobs(who, None, 100, lambda meta, state: True)
        assert [meta.job_id for meta, _ in listed] == shown
        for job_id in shown:
            job = self.model.jobs[job_id]
            _, state = await self.world.reader.job(who, job_id)
            assert (state.status, state.error) == (job.status, job.error)
            slots = (await self.world.reader.page(who, job_id, 0, 100, lambda slot: True)).slots
            assert [slot.url for slot in slots] == list(job.urls)
            assert [slot.status for slot in slots] == job.shown()
            tally = counts(state, self.world.clock.now)
            assert [tally[word] for word in ("done", "failed", "cancelled")] == [
                job.shown().count(word) for word in ("done", "failed", "cancelled")
            ]
            if job.status not in LIVE:
                assert job_id in [detail["job_id"] for _, detail in self.world.bus.published]


Service.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip
TestService = Service.TestCase
