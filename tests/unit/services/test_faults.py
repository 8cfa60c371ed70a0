"""One fault at each single call of a job's life: whatever it is, the job ends with one outcome for each target."""

from __future__ import annotations

import asyncio
import functools
import random

import pytest

from sift.errors import TargetBusy, TargetFailed, Unavailable
from sift.targets import Content
from tests.unit.services.faults import Fault, Killed, Plan, at_number
from tests.unit.services.world import World, page, urls

COUNT = 5
LARGE = Content(random.Random(1).randbytes(40_000), "application/octet-stream")


async def live_through(plan: Plan | None) -> World:
    """A job whose targets are done, failed, busy and large, under the plan's fault."""
    world = World()
    ok, failing, busy, large, _ = urls(COUNT)
    world.site.answers = {
        ok: [page("ok")],
        failing: [TargetFailed("timeout", "It took too long.")],
        busy: [TargetBusy("429"), page("at last")],
        large: [LARGE],
    }
    life = world.restart(plan)
    try:
        await world.submit(COUNT, window=2)
    except Unavailable:
        await world.submit(COUNT, window=2)
    except Killed:
        await world.bury_process()
        await world.submit(COUNT, window=2)
    await world.run_on(minutes=60)
    world.first_life = life  # type: ignore[attr-defined]
    return world


@functools.cache
def calls() -> tuple[str, ...]:
    """The calls of that life when nothing goes wrong."""
    world = asyncio.run(live_through(None))
    return tuple(world.first_life.calls)  # type: ignore[attr-defined]


def test_the_life_makes_every_call_that_there_is() -> None:
    assert {
        "store.get_idempotency", "store.count_jobs", "store.commit", "store.claim", "store.put_outcome", "store.finish",
        "store.hand_back", "store.release", "store.get_segment", "store.settle", "store.get_job", "store.leave_outbox",
        "queue.send", "queue.set_visibility", "blobs.put", "bus.publish", "store.live_jobs", "store.outbox",
    } <= set(calls())  # fmt: skip


@pytest.mark.parametrize("fault", list(Fault))
def test_no_single_fault_loses_a_target(fault: Fault) -> None:
    for number, name in enumerate(calls()):
        if (name, fault) == ("store.settle", Fault.REPEATED):
            continue  # a transaction that the SDK repeats carries the same token and answers the same
        random.seed(number)
        world = asyncio.run(live_through(at_number(number, fault)))
        (job_id,) = world.store.metas
        world.check(job_id, ["done", "failed", "done", "done", "done"])
        assert world.state(job_id).status == "partial", (number, name)
        assert world.quiet(), (number, name)


@pytest.mark.parametrize("port", ["store", "queue", "blobs", "bus", "dead"])
def test_a_port_that_is_down_for_ten_minutes_only_delays(port: str) -> None:
    async def story() -> None:
        world = World()
        world.site.answers = {urls(1)[0]: [LARGE]}
        job = await world.submit(COUNT, window=2)
        world.queue.add("not a target message")
        await world.deliver(1)
        until = world.clock.now + 600_000

        def down(_number: int, called: str) -> Fault | None:
            return Fault.REQUEST_LOST if called.startswith(port) and world.clock.now < until else None

        world.restart(down)
        await world.run_on(minutes=90)
        world.check(job.meta.job_id, ["done"] * COUNT)
        while not world.queue.buried:
            world.clock.now += 1_000
            await world.deliver()

    asyncio.run(story())
