"""The course of a job: every cell of the state table of pause, resume and cancel, and what a pause holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from sift.errors import Conflict, NotFound, TargetBusy
from sift.jobs import Flight, Meta, State
from tests.unit.services.world import ANN, BOB, HOUR, MINUTE, World, page, urls

LEASED = 200_000

#: status -> what pause, resume and cancel make of it (None: refused).
TABLE = {
    "queued": ("paused", None, "cancelled"),
    "running": ("pausing", None, "cancelled"),
    "pausing": ("pausing", None, "cancelled"),
    "paused": ("paused", "queued", "cancelled"),
    "cancelling": (None, None, "cancelled"),
    "cancelled": (None, None, "cancelled"),
    "done": (None, None, None),
    "partial": (None, None, None),
    "failed": (None, None, None),
}


async def _in(world: World, status: str) -> str:
    """A job in this status, with one target that is being fetched while the status allows it."""
    job_id = (await world.submit(3)).meta.job_id
    now = world.clock.now
    state = world.state(job_id)
    held = {**state.flight, 0: Flight(now + LEASED, 1)}
    if status in {"running", "pausing"}:
        pausing_at = now if status == "pausing" else None
        world.store.states[job_id] = replace(state, status=status, flight=held, pausing_at=pausing_at, started_at=now)
    elif status in {"paused", "cancelling"}:
        world.store.states[job_id] = replace(state, status=status, pausing_at=now)
    elif status == "cancelled":
        await world.controller.cancel(ANN, job_id)
    elif status != "queued":
        failing = {"done": 0, "partial": 1, "failed": 3}[status]
        for url in urls(failing):
            world.site.answers[url] = [ValueError("no")]
        await world.run_on()
    assert world.state(job_id).status == status
    return job_id


@pytest.mark.parametrize("column", range(3), ids=["pause", "resume", "cancel"])
@pytest.mark.parametrize("status", TABLE)
def test_every_cell_of_the_state_table(status: str, column: int) -> None:
    async def story() -> None:
        world = World()
        job_id = await _in(world, status)
        control = world.controller
        call: Callable[..., Awaitable[tuple[Meta, State]]] = (control.pause, control.resume, control.cancel)[column]
        expected = TABLE[status][column]
        before = world.contents()
        if expected is None:
            with pytest.raises(Conflict) as refused:
                await call(ANN, job_id)
            assert refused.value.code == "invalid_state"
            assert status in refused.value.detail
            assert world.contents() == before
            return
        _, state = await call(ANN, job_id)
        assert state.status == expected
        if column != 1:  # doing it again changes nothing
            again = world.contents()
            assert (await call(ANN, job_id))[1].status == expected
            assert world.contents() == again
        with pytest.raises(NotFound):
            await call(BOB, job_id)

    asyncio.run(story())


def test_pausing_becomes_paused_when_the_last_lease_ends_and_resume_goes_on() -> None:
    async def story() -> None:
        world = World()
        submitted = await world.submit(targets=None, count=20, window=4)
        job_id = submitted.meta.job_id

        async def pause() -> None:
            assert (await world.controller.pause(ANN, job_id))[1].status == "pausing"

        world.site.during[urls(1)[0]] = pause
        await world.drain()
        state = world.state(job_id)
        assert state.status == "paused"
        fetched = len(world.site.fetched)
        assert fetched <= 4
        assert state.done == fetched
        await world.sweep()
        world.clock.now += HOUR
        await world.drain()
        await world.sweep()
        assert len(world.site.fetched) == fetched  # nothing starts while it is paused
        assert (await world.controller.resume(ANN, job_id))[1].status == "queued"
        await world.drain()
        world.check(job_id, ["done"] * 20)
        assert sorted(world.site.fetched) == sorted(urls(20))

    asyncio.run(story())


def test_resume_sends_again_what_the_pause_took_off_the_queue() -> None:
    async def story() -> None:
        world = World()
        job_id = (await world.submit(3)).meta.job_id
        await world.controller.pause(ANN, job_id)
        await world.drain()
        assert not world.queue.waiting
        await world.controller.resume(ANN, job_id)
        assert len(world.queue.waiting) == 3
        await world.drain()
        world.check(job_id, ["done"] * 3)

    asyncio.run(story())


def test_a_quick_resume_and_pause_is_not_overtaken_by_the_first_pause() -> None:
    async def story() -> None:
        world = World()
        job_id = await _in(world, "running")
        lease = world.state(job_id).flight[0].until
        _, first = await world.controller.pause(ANN, job_id)
        assert first.pausing_at is not None
        finished = await world.store.finish(job_id, 0, lease, "done", 1)
        world.clock.now += 1
        await world.advancer.advance(job_id, finished.state)
        await world.controller.resume(ANN, job_id)
        await world.store.claim(job_id, 1, world.clock.now + LEASED, world.clock.now)
        await world.controller.pause(ANN, job_id)
        assert not (await world.store.end_pause(job_id, first.pausing_at)).ok
        assert world.state(job_id).status == "pausing"

    asyncio.run(story())


def test_a_busy_target_that_is_handed_back_lets_the_pause_end() -> None:
    async def story() -> None:
        world = World()
        job_id = (await world.submit(1)).meta.job_id
        world.site.answers[urls(1)[0]] = [TargetBusy("busy"), page("x")]

        async def pause() -> None:
            await world.controller.pause(ANN, job_id)

        world.site.during[urls(1)[0]] = pause
        await world.deliver()
        assert world.state(job_id).status == "paused"
        await world.controller.resume(ANN, job_id)
        world.clock.now += MINUTE
        await world.run_on()
        world.check(job_id, ["done"])

    asyncio.run(story())


def test_the_deadline_runs_on_while_paused() -> None:
    async def story() -> None:
        world = World(deadline_seconds=600)
        job_id = (await world.submit(3)).meta.job_id
        await world.controller.pause(ANN, job_id)
        world.clock.now += 600_000
        await world.sweep()
        state = world.state(job_id)
        assert (state.status, state.error) == ("failed", "deadline")
        slots = await world.reader.page(ANN, job_id, 0, 10, lambda slot: True)
        errors: list[Any] = [slot.error for slot in slots.slots]
        assert [error["code"] for error in errors] == ["deadline"] * 3
        assert world.quiet()

    asyncio.run(story())


def test_nothing_starts_after_a_cancel_and_what_was_running_is_kept() -> None:
    async def story() -> None:
        world = World()
        job_id = (await world.submit(30, window=4)).meta.job_id

        async def cancel() -> None:
            await world.controller.cancel(ANN, job_id)

        world.site.during[urls(4)[3]] = cancel
        await world.drain()
        state = world.state(job_id)
        assert state.status == "cancelled"
        assert len(world.site.fetched) <= 4
        assert state.done == len(world.site.fetched)
        slots = (await world.reader.page(ANN, job_id, 0, 99, lambda slot: True)).slots
        assert [slot.status for slot in slots].count("done") == state.done
        assert {slot.status for slot in slots[state.done :]} == {"cancelled"}
        assert world.quiet() or (await world.sweep()).announced

    asyncio.run(story())
