"""The sweeper alone: what it sends again and when, what it ends, frees and announces."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from sift import ids
from sift.identity import Limits
from sift.jobs import Flight
from sift.services.submit import Submitted
from sift.services.sweep import LOST_MS, QUIET_MS
from sift.services.terms import JOBS_PER_SHARD, MOST_SHARDS, shard_count
from sift.specs import Spec
from tests.template.document import load
from tests.unit.services.faults import Fault, at
from tests.unit.services.world import ANN, LEASE_SECONDS, MINUTE, NOW, VISIBILITY_SECONDS, World

LEASE_MS = LEASE_SECONDS * 1_000
VISIBILITY_MS = VISIBILITY_SECONDS * 1_000


async def lost(world: World, count: int = 3) -> Submitted:
    """A job whose messages were all lost."""
    job = await world.submit(count)
    world.queue.waiting.clear()
    return job


def test_a_sweep_over_nothing(world: World) -> None:
    report = asyncio.run(world.sweep())
    assert (report.live, report.resent, report.ended, report.announced, report.removed, report.failed) == (
        0, 0, 0, 0, 0, [],
    )  # fmt: skip


def test_a_never_claimed_target_is_sent_again_when_the_queue_is_empty(world: World) -> None:
    async def story() -> None:
        job = await lost(world)
        quiet = world.state(job).flight[0].until
        world.clock.now = quiet + QUIET_MS - 1
        assert (await world.sweep()).resent == 0
        world.clock.now = quiet + QUIET_MS
        assert (await world.sweep()).resent == 3
        assert await world.queue.visible() == 3
        await world.drain()
        world.check(job.meta.job_id, ["done"] * 3)

    asyncio.run(story())


def test_a_message_that_waits_is_not_doubled(world: World) -> None:
    async def story() -> None:
        await world.submit(3)
        world.clock.now += QUIET_MS + MINUTE
        assert (await world.sweep()).resent == 0
        assert len(world.queue.waiting) == 3

    asyncio.run(story())


def test_after_a_quarter_of_an_hour_a_target_is_sent_whatever_the_queue_shows(world: World) -> None:
    async def story() -> None:
        job = await lost(world)
        world.queue.add("of another job, and nobody takes it")
        quiet = world.state(job).flight[0].until
        world.clock.now = quiet + LOST_MS - 1
        assert (await world.sweep()).resent == 0
        world.clock.now = quiet + LOST_MS
        assert (await world.sweep()).resent == 3

    asyncio.run(story())


def test_what_was_sent_again_is_sent_once_a_period(world: World) -> None:
    async def story() -> None:
        await lost(world)
        sent = 0
        for _ in range(30):  # minutes
            world.clock.now += MINUTE
            sent += (await world.sweep()).resent
            world.queue.waiting.clear()
        # 3 targets every QUIET_MS, whose count starts with the margin of the clocks: every third minute.
        assert sent == 3 * 30 // (QUIET_MS // MINUTE)

    asyncio.run(story())


def test_jobs_in_shards_of_a_larger_cap_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """`JobsTotal` was lowered while they were live: they end, are announced and removed like any other."""

    async def story() -> None:
        limits = Limits(targets_per_job=10, jobs_per_caller=200, retained_jobs=1_000, job_bytes=1_000_000)
        world = World(jobs_total=JOBS_PER_SHARD * MOST_SHARDS, limits=limits)
        world.terms = replace(world.terms, jobs_total=8)
        jobs = []
        for shard in range(MOST_SHARDS):
            monkeypatch.setattr("secrets.randbelow", lambda _, shard=shard: shard)
            jobs.append(await world.submit(targets=[Spec(f"https://example.com/{shard}")]))
        assert [job.meta.shard for job in jobs] == list(range(MOST_SHARDS))
        world.restart()
        world.queue.waiting.clear()
        world.clock.now += LOST_MS
        report = await world.sweep()
        assert (report.live, report.resent) == (len(jobs), len(jobs))
        world.restart(at("bus.publish", Fault.REQUEST_LOST))
        await world.drain()
        last = jobs[-1].meta
        assert (await world.sweep()).announced == 1
        assert not any(world.store.outboxes.values())
        assert not any(world.store.live.values())
        await world.controller.delete(ANN, last.job_id)
        assert (await world.sweep()).removed == 1
        assert last.job_id not in world.store.metas
        assert not any(world.store.removing.values())

    asyncio.run(story())


def test_a_sweep_looks_into_the_shards_of_any_cap() -> None:
    largest = load()["Parameters"]["JobsTotal"]["MaxValue"]
    assert shard_count(largest) == MOST_SHARDS


def test_two_sweepers_at_once_send_once(world: World) -> None:
    async def story() -> None:
        await lost(world)
        world.clock.now += QUIET_MS
        first, second = await asyncio.gather(world.sweep(), world.sweep())
        # The second one may have found the first one's touch unchanged only by writing the same value.
        assert first.resent + second.resent in {3, 6}
        assert first.failed == second.failed == []

    asyncio.run(story())


def test_a_target_of_a_dead_worker_is_sent_again_a_visibility_timeout_after_its_lease(world: World) -> None:
    async def story() -> None:
        job = await lost(world, 1)
        lease = NOW + LEASE_MS
        await world.store.claim(job.meta.job_id, 0, lease, NOW)
        world.clock.now = lease + VISIBILITY_MS - 1
        assert (await world.sweep()).resent == 0, "its message comes back by itself until then"
        world.clock.now = lease + VISIBILITY_MS
        assert (await world.sweep()).resent == 1
        assert world.state(job).flight[0].claims == 1, "the crash stays charged"
        await world.drain()
        world.check(job.meta.job_id, ["done"])

    asyncio.run(story())


def test_a_target_that_is_being_worked_on_is_left_alone(world: World) -> None:
    async def story() -> None:
        job = await lost(world, 2)
        world.clock.now += QUIET_MS * 10
        await world.store.claim(job.meta.job_id, 0, world.clock.now + LEASE_MS, world.clock.now)
        assert (await world.sweep()).resent == 1
        assert world.state(job).flight[0].until == world.clock.now + LEASE_MS

    asyncio.run(story())


def test_a_change_in_between_stops_the_sending(world: World) -> None:
    async def story() -> None:
        await lost(world, 2)
        world.clock.now += QUIET_MS
        life = world.restart()

        async def claimed(*args: object) -> object:
            job_id = next(iter(world.store.metas))
            await world.store.claim(job_id, 0, world.clock.now + LEASE_MS, world.clock.now)
            return 0

        world.queue.visible = claimed  # type: ignore[method-assign, assignment]
        report = await world.sweep()
        assert report.resent == 0
        assert "store.touch" in life.calls
        assert "queue.send" not in life.calls

    asyncio.run(story())


def test_the_window_is_topped_up(world: World) -> None:
    """A worker died between its finish and its release."""

    async def story() -> None:
        job = await world.submit(4, window=2)
        state = world.state(job)
        world.store.states[job.meta.job_id] = replace(state, flight={}, done=2)
        world.queue.waiting.clear()
        await world.sweep()
        assert world.state(job).released == 4
        assert await world.queue.visible() == 2

    asyncio.run(story())


def test_a_job_past_its_deadline_is_ended() -> None:
    async def story() -> None:
        world = World(deadline_seconds=600)
        job = await world.submit(3)
        world.clock.now += 599_999
        await world.sweep()
        assert world.state(job).status == "queued"
        world.clock.now += 1
        await world.sweep()
        state = world.state(job)
        assert (state.status, state.error, state.ended_at) == ("failed", "deadline", world.clock.now)
        assert state.expires_at == world.clock.now // 1000 + 3_600
        assert world.quiet()
        assert world.store.callers == {"acme/ann": set()}
        ((_, event),) = world.bus.published
        assert (event["status"], event["error"]) == ("failed", "deadline")

    asyncio.run(story())


def test_an_end_that_was_not_announced_is_announced(world: World) -> None:
    async def story() -> None:
        world.restart(at("bus.publish", Fault.REQUEST_LOST))
        job = await world.submit(1)
        await world.deliver()
        assert world.state(job).status == "done"
        assert world.store.outboxes == {0: {job.meta.job_id}}
        assert world.bus.published == []
        assert (await world.sweep()).announced == 1
        assert (await world.sweep()).announced == 0
        world.check(job.meta.job_id)

    asyncio.run(story())


def test_what_is_in_the_outbox_by_mistake_leaves_it(world: World) -> None:
    async def story() -> None:
        live = await world.submit(1)
        gone = ids.new_job_id(NOW)
        world.store.outboxes[0] = {live.meta.job_id, gone}
        assert (await world.sweep()).announced == 0
        assert world.bus.published == []
        assert world.store.outboxes == {0: set()}

    asyncio.run(story())


def test_slots_of_jobs_that_are_gone_or_over_are_freed(world: World) -> None:
    async def story() -> None:
        job = await world.submit(1)
        await world.drain()
        over, gone = job.meta.job_id, ids.new_job_id(NOW)
        world.store.live[0] = {over, gone}
        world.store.callers["acme/ann"] = {over}
        report = await world.sweep()
        assert (report.live, report.ended) == (2, 1)
        assert world.store.live == {0: set()}
        assert world.store.callers == {"acme/ann": set()}

    asyncio.run(story())


def test_a_job_that_fails_does_not_keep_the_sweep_from_the_others(world: World) -> None:
    async def story() -> None:
        bad, good = [await lost(world, count) for count in (1, 2)]
        world.clock.now += QUIET_MS
        del world.store.segments[bad.meta.job_id, 0]
        world.restart(at("store.touch", Fault.REQUEST_LOST))
        report = await world.sweep()
        assert len(report.failed) == 1
        await world.sweep()
        await world.drain()
        world.check(good.meta.job_id, ["done"] * 2)

    asyncio.run(story())


@pytest.mark.parametrize("call", ["get_job", "removals"])
def test_what_nobody_foresaw_of_one_job_does_not_keep_the_sweep_from_the_others(world: World, call: str) -> None:
    async def story() -> None:
        bad, good = [await lost(world, count) for count in (1, 2)]
        if call == "removals":
            await world.controller.cancel(ANN, bad.meta.job_id)
            await world.controller.delete(ANN, bad.meta.job_id)
        world.clock.now += QUIET_MS
        get_job, get_meta = world.store.get_job, world.store.get_meta

        async def fail_for_one(job_id: str) -> Any:
            if job_id == bad.meta.job_id:
                raise KeyError("identity")
            return await (get_job if call == "get_job" else get_meta)(job_id)

        name = "get_job" if call == "get_job" else "get_meta"
        setattr(world.store, name, fail_for_one)
        report = await world.sweep()
        assert (report.failed, report.resent) == ([bad.meta.job_id], 2)
        await world.drain()
        world.check(good.meta.job_id, ["done"] * 2)

    asyncio.run(story())


def test_a_sweep_that_runs_out_of_time_ends_in_good_order(world: World) -> None:
    async def story() -> None:
        for count in range(1, 4):
            await lost(world, count)
        world.clock.now += QUIET_MS
        report = await world.sweeper.sweep(lambda: 9.9)
        assert (report.live, report.resent) == (3, 0)

    asyncio.run(story())


def test_every_shard_is_walked() -> None:
    async def story() -> None:
        world = World(jobs_total=1_001)
        for count in range(1, 6):
            await lost(world, count)
        world.clock.now += LOST_MS
        report = await world.sweep()
        assert (report.live, report.resent) == (5, 1 + 2 + 3 + 4 + 5)

    asyncio.run(story())


@pytest.mark.parametrize("claims", [0, 1, 3])
def test_the_sweeper_alone_brings_any_job_to_its_end(claims: int) -> None:
    """No message and no request: only the sweeper, and workers for what it sends."""

    async def story() -> None:
        world = World()
        job = await lost(world, 6)
        stuck = {index: Flight(NOW - 1, claims=claims) for index in range(6)}
        world.store.states[job.meta.job_id] = replace(world.state(job), flight=stuck)
        await world.run_on(minutes=30)
        world.check(job.meta.job_id, ["done"] * 6)

    asyncio.run(story())
