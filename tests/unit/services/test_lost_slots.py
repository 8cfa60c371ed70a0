"""Slots of jobs whose items are gone, and a queue that takes a part of what it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from sift.errors import CallerBusy
from sift.identity import Limits
from sift.messages import TargetMessage
from sift.specs import Spec
from tests.unit.services.world import ANN, MINUTE, World

OTHER = [Spec("https://example.com/other")]


def test_a_caller_is_not_locked_out_by_jobs_that_no_longer_exist() -> None:
    async def story() -> None:
        world = World(jobs_total=1, limits=Limits(99, 1, 99, 10**6))
        lost = (await world.submit(2)).meta.job_id
        with pytest.raises(CallerBusy):
            await world.submit(targets=OTHER)
        # What the table's TTL does when no sweeper has run for longer than the job is kept.
        del world.store.metas[lost], world.store.states[lost]
        await world.sweep()
        assert world.store.live[0] == set()
        job = await world.submit(targets=OTHER)
        assert world.store.callers[ANN.caller] == {job.meta.job_id}
        with pytest.raises(CallerBusy):
            await world.submit(targets=[Spec("https://example.com/third")])

    asyncio.run(story())


def test_what_the_queue_does_not_take_is_sent_again_by_the_sweeper() -> None:
    async def story() -> None:
        world = World()
        take_all = world.queue.send

        async def take_some(messages: Sequence[TargetMessage]) -> int:
            return await take_all(messages[::3])

        world.queue.send = take_some  # type: ignore[method-assign]
        job = await world.submit(60, window=32)
        world.restart()
        await world.drain()
        assert 0 < world.state(job).done < 60
        world.queue.send = take_all  # type: ignore[method-assign]
        world.clock.now += 4 * MINUTE
        await world.run_on()
        world.check(job.meta.job_id, ["done"] * 60)
        assert len(set(world.site.fetched)) == len(world.site.fetched) == 60

    asyncio.run(story())
