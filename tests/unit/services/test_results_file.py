"""What stands in a results file: every slot in order, as the job was when it was begun."""

from __future__ import annotations

import asyncio
import dataclasses
import random

import pytest

from sift.errors import TargetFailed
from sift.jobs import Flight
from sift.targets import Content
from tests.unit.services.faults import Fault, Killed, at
from tests.unit.services.results_files import check, ended, lines, write_part
from tests.unit.services.world import ANN, LEASE_SECONDS, World, urls


@pytest.mark.parametrize("count", [1, 2, 30, 250])
def test_every_target_is_a_line_in_submit_order(count: int) -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, count)
        assert await world.assemble() == []
        check(await lines(world, job), world, job)
        assert not world.blobs.uploads
        assert not world.assembly.waiting
        parts = world.store.assemblies[job.meta.job_id].parts
        assert (len(parts) > 1) == (count > 2)

    asyncio.run(story())


def test_contents_that_compress_to_nothing_make_parts_as_well() -> None:
    """Else one part would take all of their gigabytes, and more time than a function has."""

    async def story() -> None:
        world = World()
        for url in urls(30):
            world.site.answers[url] = [Content(b"x" * 20_000, "text/plain", {"status": 200})]
        job = await world.submit(30)
        await world.drain()
        world.assembler._pressed_bytes = 100_000
        await write_part(world, job)
        assert 5 <= world.store.assemblies[job.meta.job_id].next_index < 20, "one part has 100 kB, and some as they are"
        await world.assemble()
        check(await lines(world, job), world, job)

    asyncio.run(story())


def test_failed_binary_and_large_contents_read_as_on_a_page_of_targets() -> None:
    async def story() -> None:
        world = World()
        world.site.answers[urls(4)[1]] = [TargetFailed("http_error", "It answered 404.", "Check it.", status=404)]
        world.site.answers[urls(4)[2]] = [Content(b"\x00\xff", "image/png", {"status": 200})]
        world.site.answers[urls(4)[3]] = [Content(bytes(range(256)) * 3_000, "application/pdf", {"status": 200})]
        job = await world.submit(4)
        await world.drain()
        await world.assemble()
        first, failed, binary, large = await lines(world, job)
        assert first["content"] == urls(4)[0]
        assert (failed["error"]["code"], failed["error"]["status"], "content" in failed) == ("http_error", 404, False)
        assert (binary["content"], binary["encoding"]) == ("AP8=", "base64")
        assert (len(large["content"]), large["encoding"]) == (4 * -(-256 * 3_000 // 3), "base64")

    asyncio.run(story())


def test_what_is_over_the_limit_or_lost_has_a_pointer() -> None:
    async def story() -> None:
        world = World(limits=dataclasses.replace(World().limits, job_bytes=10**8))
        chance = random.Random(1)
        world.site.answers[urls(2)[0]] = [Content(bytes(4_000_001), "text/plain", {"status": 200})]
        world.site.answers[urls(2)[1]] = [Content(chance.randbytes(50_000), "image/png", {"status": 200})]
        job = await world.submit(2)
        await world.drain()
        lost = world.store.outcomes[job.meta.job_id, 1].blob
        assert lost is not None
        del world.blobs.blobs[lost]
        await world.assemble()
        for index, slot in enumerate(await lines(world, job)):
            assert slot["content_url"] == f"/v1/jobs/{job.meta.job_id}/targets/{index}/content"
            assert "content" not in slot

    asyncio.run(story())


def test_slots_that_never_ran_are_there() -> None:
    async def story() -> None:
        world = World(ttl_seconds=0)
        cancelled = await world.submit(5, window=2)
        await world.deliver(1)
        await world.controller.cancel(ANN, cancelled.meta.job_id)
        late = await world.submit(2, fresh=True)
        world.clock.now = late.state.deadline_at
        await world.sweep()
        await world.assemble()
        assert [slot["status"] for slot in await lines(world, cancelled)] == ["done", *["cancelled"] * 4]
        assert [slot["error"]["code"] for slot in await lines(world, late)] == ["deadline"] * 2

    asyncio.run(story())


def test_a_fetch_in_flight_at_the_cancel_is_waited_for() -> None:
    """Its outcome counts, so the file must have it; the lease bounds the wait."""

    async def story() -> None:
        world = World()
        job = await world.submit(2)
        during: list[bool] = []

        async def cancel() -> None:
            await world.controller.cancel(ANN, job.meta.job_id)
            assert len(await world.assemble()) == 1, "the message waits"
            during.append(job.meta.job_id in world.store.assemblies)

        world.site.during[urls(2)[0]] = cancel
        await world.deliver(1)
        assert during == [False]
        assert (await world.results.find(ANN, job.meta.job_id)).key is None
        world.clock.now += (LEASE_SECONDS + 12) * 1000
        await world.assemble()
        assert [slot["status"] for slot in await lines(world, job)] == ["done", "cancelled"]

    asyncio.run(story())


def test_a_worker_that_dies_in_a_cancelled_job_holds_the_file_up_for_a_lease_only() -> None:
    async def story() -> None:
        world = World()
        job = await world.submit(1)
        world.restart(at("store.put_outcome", Fault.DEATH_BEFORE))
        with pytest.raises(Killed):
            await world.deliver(1)
        await world.bury_process()
        await world.controller.cancel(ANN, job.meta.job_id)
        assert len(await world.assemble()) == 1
        world.clock.now += (LEASE_SECONDS + 12) * 1000
        await world.assemble()
        assert [slot["status"] for slot in await lines(world, job)] == ["cancelled"]

    asyncio.run(story())


def test_an_outcome_after_the_file_was_begun_does_not_change_it_midway() -> None:
    """The file is the job as it was when it was begun, in every part."""

    async def story() -> None:
        world = World()
        job = await ended(world, 30)
        job_id = job.meta.job_id
        state = world.state(job)
        entry = {29: Flight(0)}
        world.store.states[job_id] = dataclasses.replace(state, status="cancelled", done=29, flight=entry)
        await write_part(world, job)
        begun = world.store.assemblies[job_id]
        assert (len(begun.parts), begun.done, list(begun.flight)) == (1, False, [29])
        world.store.states[job_id] = dataclasses.replace(state, status="cancelled")
        await world.assemble()
        found = await lines(world, job)
        assert [slot["status"] for slot in found] == ["done"] * 29 + ["cancelled"]

    asyncio.run(story())
