"""Bringing a job forward: its end, its announcement, and the end of a pause."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from sift import ids
from sift.clock import rfc3339
from sift.jobs import Flight
from tests.unit.services.faults import Fault, at
from tests.unit.services.world import ANN, MINUTE, NOW, World


def test_advancing_a_job_that_is_gone_or_needs_nothing_writes_nothing(world: World) -> None:
    async def story() -> None:
        job = await world.submit(3)
        before = world.contents()
        await world.advancer.advance(ids.new_job_id(NOW))
        await world.advancer.advance(job.meta.job_id)
        assert world.contents() == before

    asyncio.run(story())


def test_the_event_of_an_end(world: World) -> None:
    async def story() -> None:
        job = await world.submit(2)
        world.clock.now += MINUTE
        await world.drain()
        ((name, event),) = world.bus.published
        assert name == "Sift Job Ended"
        assert event == {
            "job_id": job.meta.job_id, "kind": "fetch", "tenant": "acme", "actor": "ann", "status": "done",
            "error": None, "bytes": world.state(job).bytes, "created_at": rfc3339(NOW),
            "ended_at": rfc3339(NOW + MINUTE),
            "counts": {"total": 2, "pending": 0, "running": 0, "done": 2, "failed": 0, "cancelled": 0},
        }  # fmt: skip

    asyncio.run(story())


def test_an_end_computed_from_an_old_state_is_refused_and_computed_anew(world: World) -> None:
    async def story() -> None:
        job = await world.submit(2)
        old = world.state(job)
        await world.drain()
        assert world.state(job).status == "done"
        world.clock.now = job.meta.deadline_at
        await world.advancer.advance(job.meta.job_id, old)
        assert (world.state(job).status, world.state(job).error) == ("done", None)
        assert len(world.bus.published) == 1

    asyncio.run(story())


def test_a_deadline_that_races_with_an_outcome_counts_it(world: World) -> None:
    async def story() -> None:
        job = await world.submit(3)
        old = world.state(job)
        await world.deliver(1)
        world.clock.now = job.meta.deadline_at
        await world.advancer.advance(job.meta.job_id, old)
        state = world.state(job)
        assert (state.status, state.error, state.done) == ("partial", "deadline", 1)

    asyncio.run(story())


def test_a_pause_ends_when_the_last_lease_does(world: World) -> None:
    async def story() -> None:
        job = await world.submit(2)
        await world.store.claim(job.meta.job_id, 0, NOW + 100_000, NOW)
        _, state = await world.controller.pause(ANN, job.meta.job_id)
        assert state.status == "pausing"
        await world.deliver()
        assert world.site.fetched == [], "a paused job starts nothing"
        world.clock.now += 100_001
        await world.sweep()
        assert world.state(job).status == "paused"
        _, state = await world.controller.resume(ANN, job.meta.job_id)
        assert state.status == "queued"
        await world.run_on()
        world.check(job.meta.job_id, ["done"] * 2)

    asyncio.run(story())


def test_a_quick_resume_and_pause_is_not_overtaken_by_the_first_pause(world: World) -> None:
    async def story() -> None:
        job = await world.submit(2)
        await world.store.claim(job.meta.job_id, 0, NOW + 100_000, NOW)
        first = (await world.store.pause(job.meta.job_id, "pausing", NOW)).state
        assert first is not None
        idle = {index: Flight(NOW - 1) for index in range(2)}
        world.store.states[job.meta.job_id] = replace(world.state(job), pausing_at=NOW + 1)
        old = replace(first, flight=idle)
        await world.advancer.advance(job.meta.job_id, old)
        assert world.state(job).status == "pausing", "a lease of the second pause still runs"

    asyncio.run(story())


def test_a_segment_that_is_missing_leaves_its_targets_to_the_sweeper(world: World) -> None:
    async def story() -> None:
        world.restart(at("store.get_segment", Fault.REQUEST_LOST, times=2))
        job = await world.submit(4, window=2)
        await world.deliver()
        assert world.state(job).released == 4
        assert await world.queue.visible() == 0
        await world.run_on()
        world.check(job.meta.job_id, ["done"] * 4)

    asyncio.run(story())


def test_an_end_whose_announcement_fails_halfway_is_announced_again(world: World) -> None:
    async def story() -> None:
        world.restart(at("store.leave_outbox", Fault.REQUEST_LOST))
        job = await world.submit(1)
        await world.deliver()
        await world.sweep()
        assert len(world.bus.published) == 2
        world.check(job.meta.job_id)

    asyncio.run(story())
