"""Steering a job: what each status allows, and what a cancel leaves behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, get_args

import pytest

from sift.errors import Conflict
from sift.jobs import LIVE, Status
from tests.unit.services.faults import Fault, at
from tests.unit.services.world import ANN, NOW, World


async def in_status(world: World, status: Status) -> str:
    """A job that has been put into a status."""
    job = await world.submit(3)
    values: dict[str, Any] = {"pausing_at": NOW} if status in {"pausing", "paused"} else {}
    if status not in LIVE:
        await world.store.settle(job.meta, job.state, "cancelled", None, NOW, NOW // 1000 + 3_600)
    world.store.states[job.meta.job_id] = replace(world.state(job), status=status, **values)
    return job.meta.job_id


ALLOWED: dict[str, dict[str, str]] = {
    "cancel": {
        "queued": "cancelled", "running": "cancelled", "pausing": "cancelled", "paused": "cancelled",
        "cancelling": "cancelled", "cancelled": "cancelled",
    },
    # Nothing is leased here, so `pausing` is over as soon as it is looked at.
    "pause": {"queued": "paused", "running": "paused", "pausing": "pausing", "paused": "paused"},
    "resume": {"paused": "queued"},
}  # fmt: skip


@pytest.mark.parametrize("status", get_args(Status))
@pytest.mark.parametrize("action", sorted(ALLOWED))
def test_what_a_status_allows(world: World, action: str, status: Status) -> None:
    async def story() -> None:
        job_id = await in_status(world, status)
        act = getattr(world.controller, action)
        to = ALLOWED[action].get(status)
        if to is None:
            before = world.contents()
            with pytest.raises(Conflict) as caught:
                await act(ANN, job_id)
            assert (caught.value.code, caught.value.retry_after) == ("invalid_state", None)
            assert world.contents() == before
        else:
            _, state = await act(ANN, job_id)
            assert state.status == world.state(job_id).status == to

    asyncio.run(story())


def test_a_cancel_frees_the_slots_at_once_and_is_announced(world: World) -> None:
    async def story() -> None:
        job_id = (await world.submit(3)).meta.job_id
        _, state = await world.controller.cancel(ANN, job_id)
        assert (state.status, state.ended_at, state.error) == ("cancelled", NOW, None)
        assert world.quiet()
        assert world.store.callers == {"acme/ann": set()}
        assert world.store.idempotency == {}
        ((_, event),) = world.bus.published
        assert event["counts"]["cancelled"] == 3
        assert await world.deliver() == []
        assert world.site.fetched == []

    asyncio.run(story())


def test_a_second_cancel_changes_and_announces_nothing(world: World) -> None:
    async def story() -> None:
        job_id = (await world.submit(3)).meta.job_id
        first = await world.controller.cancel(ANN, job_id)
        before = world.contents()
        world.clock.now += 60_000
        assert await world.controller.cancel(ANN, job_id) == first
        assert world.contents() == before

    asyncio.run(story())


def test_a_cancel_that_comes_too_late_says_so(world: World) -> None:
    async def story() -> None:
        job = await world.submit(1)
        settle = world.store.settle
        beaten: list[str] = []

        async def settle_late(*args: Any) -> Any:
            if not beaten:
                beaten.append("yes")
                world.store.settle = settle  # type: ignore[method-assign]
                await world.deliver()
            return await settle(*args)

        world.store.settle = settle_late  # type: ignore[method-assign, assignment]
        with pytest.raises(Conflict, match="done"):
            await world.controller.cancel(ANN, job.meta.job_id)
        world.check(job.meta.job_id, ["done"])

    asyncio.run(story())


def test_a_cancel_whose_answer_is_lost_can_be_repeated(world: World) -> None:
    async def story() -> None:
        job_id = (await world.submit(1)).meta.job_id
        world.restart(at("store.settle", Fault.ANSWER_LOST))
        with pytest.raises(Exception, match="answer lost"):
            await world.controller.cancel(ANN, job_id)
        _, state = await world.controller.cancel(ANN, job_id)
        assert state.status == "cancelled"
        await world.sweep()
        assert len(world.bus.published) == 1

    asyncio.run(story())
