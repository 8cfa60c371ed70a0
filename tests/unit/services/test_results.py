"""Who is asked to write a results file, and who may read it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sift.errors import Conflict
from sift.services.results import QUIET_MS
from tests.unit.services.faults import Fault, at
from tests.unit.services.results_files import check, ended, lines
from tests.unit.services.world import ANN, BOB, World


def test_the_announcement_waits_for_the_message() -> None:
    """The outbox keeps a job whose file nobody was asked to write."""

    async def story() -> None:
        world = World()
        world.restart(at("assembly.send", Fault.REQUEST_LOST))
        job = await ended(world, 1)
        assert (await world.store.outbox(0), world.bus.published) == ([job.meta.job_id], [])
        await world.sweep()
        assert await world.store.outbox(0) == []
        await world.assemble()
        check(await lines(world, job), world, job)

    asyncio.run(story())


def test_a_queue_that_takes_nothing_keeps_the_job_in_the_outbox() -> None:
    async def story() -> None:
        world = World()

        async def nothing(messages: Any) -> int:
            return 0

        world.assembly.send = nothing  # type: ignore[method-assign]
        job = await ended(world, 1)
        assert await world.store.outbox(0) == [job.meta.job_id]

    asyncio.run(story())


def test_reading_asks_again_for_a_file_that_nobody_writes() -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 1)
        world.assembly.waiting.clear()
        assert (await world.results.find(ANN, job.meta.job_id)).key is None
        assert not world.assembly.waiting, "somebody may be at it"
        world.clock.now += QUIET_MS + 1
        assert (await world.results.find(ANN, job.meta.job_id)).key is None
        assert len(world.assembly.waiting) == 1
        await world.assemble()
        check(await lines(world, job), world, job)

    asyncio.run(story())


def test_only_an_ended_job_of_ones_own_has_a_file() -> None:
    async def story() -> None:
        world = World()
        job = await world.submit(1)
        with pytest.raises(Conflict, match="queued") as refused:
            await world.results.find(ANN, job.meta.job_id)
        assert refused.value.code == "not_ended"
        await world.drain()
        await world.assemble()
        with pytest.raises(Exception, match="no such job"):
            await world.results.find(BOB, job.meta.job_id)

    asyncio.run(story())
