"""Results files: every slot in order, in parts, whatever dies in between."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
import random
from typing import Any

import pytest

from sift.assembly import Assembly, AssemblyMessage
from sift.errors import Conflict, TargetFailed
from sift.services.assemble import MOST_RESTARTS
from sift.services.results import QUIET_MS
from sift.services.submit import Submitted
from sift.targets import Content
from tests.unit.services.faults import Fault, Killed, at, at_number
from tests.unit.services.world import ANN, BOB, LEASE_SECONDS, World, page, urls


def noise(count: int, each: int = 3_000) -> list[str]:
    """URLs that do not compress, so that a file of a few of them has several parts."""
    chance = random.Random(count)
    return [f"https://example.com/{chance.randbytes(each).hex()}" for _ in range(count)]


async def ended(world: World, count: int = 3) -> Submitted:
    from sift.specs import Spec

    job = await world.submit(targets=[Spec(url) for url in noise(count)])
    await world.drain()
    assert world.state(job).status in {"done", "partial"}
    return job


async def lines(world: World, job: Submitted) -> list[dict[str, Any]]:
    found = await world.results.find(ANN, job.meta.job_id)
    assert found.key is not None
    body, media_type = world.blobs.blobs[found.key]
    assert media_type == "application/gzip"
    return [json.loads(line) for line in gzip.decompress(body).splitlines()]


def check(found: list[dict[str, Any]], world: World, job: Submitted) -> None:
    """A line for each target, in order, with the content of its outcome."""
    total = world.state(job).total
    assert [slot["index"] for slot in found] == list(range(total))
    for slot in found:
        outcome = world.store.outcomes[job.meta.job_id, slot["index"]]
        assert slot["status"] == outcome.status
        assert slot.get("content", "").encode() == (outcome.content or b"")


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
        left = iter([120.0])
        await world.assembler.assemble(job.meta.job_id, lambda: next(left, 10.0))
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
        entry = {29: dataclasses.replace(world.store.states[job_id].flight.get(0) or _free(), until=0)}
        world.store.states[job_id] = dataclasses.replace(state, status="cancelled", done=29, flight=entry)
        calls = iter([120.0, 10.0])
        assert await world.assembler.assemble(job_id, lambda: next(calls)) is None, "one part, then a new message"
        begun = world.store.assemblies[job_id]
        assert (len(begun.parts), begun.done, list(begun.flight)) == (1, False, [29])
        world.store.states[job_id] = dataclasses.replace(state, status="cancelled")
        await world.assemble()
        found = await lines(world, job)
        assert [slot["status"] for slot in found] == ["done"] * 29 + ["cancelled"]

    asyncio.run(story())


def _free() -> Any:
    from sift.jobs import Flight

    return Flight(0)


def test_without_time_it_goes_on_with_a_new_message() -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 30)
        steps = 0
        while world.assembly.waiting:
            ((receipt, message),) = world.assembly.receive(1)
            left = iter([120.0])
            assert await world.assembler.assemble(job.meta.job_id, lambda left=left: next(left, 10.0)) is None
            world.assembly.delete(receipt)
            steps += 1
            assert message.receives == 1
        assert steps == len(world.store.assemblies[job.meta.job_id].parts) > 3
        check(await lines(world, job), world, job)

    asyncio.run(story())


@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize("fault", list(Fault))
def test_no_single_fault_loses_a_file(fault: Fault, count: int) -> None:
    async def story() -> None:
        number = 0
        while True:
            world = World()
            job = await ended(world, count)
            life = world.restart(at_number(number, fault))
            for _ in range(5):
                try:
                    await world.assemble()
                except Killed:
                    await world.bury_process()
                world.clock.now += 720_000
                if not world.assembly.waiting:
                    break
            calls = len(life.calls)
            world.restart()
            check(await lines(world, job), world, job)
            assert [key for key in world.blobs.blobs if "/results/" in key] == [
                world.store.assemblies[job.meta.job_id].key
            ]
            number += 1
            if number > calls:
                return

    asyncio.run(story())


def test_two_assemblers_at_once_write_one_file() -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 30)
        await world.assembly.send([AssemblyMessage(job.meta.job_id)])
        first = world.assembler
        world.restart()
        await asyncio.gather(*(one.assemble(job.meta.job_id, lambda: 120.0) for one in (first, world.assembler, first)))
        check(await lines(world, job), world, job)
        assert not world.blobs.uploads

    asyncio.run(story())


def test_a_lost_upload_is_written_anew_under_another_key() -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 30)
        job_id = job.meta.job_id
        left = iter([120.0])
        await world.assembler.assemble(job_id, lambda: next(left, 10.0))
        before = world.store.assemblies[job_id]
        world.blobs.uploads.clear()  # as the bucket's lifecycle does after a day
        await world.assemble()
        after = world.store.assemblies[job_id]
        assert (after.restarts, after.done) == (1, True)
        assert after.key != before.key
        check(await lines(world, job), world, job)

    asyncio.run(story())


def test_an_upload_that_is_always_lost_is_given_up() -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 30)
        world.blobs._least_part = 10**6  # the bucket refuses the parts
        assert len(await world.assemble()) == 1, "the message stays, and ends as a dead letter"
        assert world.store.assemblies[job.meta.job_id].restarts == MOST_RESTARTS
        assert not world.blobs.blobs

    asyncio.run(story())


def test_a_job_that_is_swept_before_its_file_goes_on_leaves_nothing() -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 30)
        left = iter([120.0])
        await world.assembler.assemble(job.meta.job_id, lambda: next(left, 10.0))
        assert world.blobs.uploads
        await world.controller.delete(ANN, job.meta.job_id)
        await world.sweep()
        assert not world.blobs.uploads
        await world.assemble()
        assert not any((world.blobs.uploads, world.blobs.blobs, world.store.assemblies, world.store.states))

    asyncio.run(story())


def test_a_job_that_is_deleted_meanwhile_leaves_nothing() -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 30)
        job_id = job.meta.job_id
        left = iter([120.0])
        await world.assembler.assemble(job_id, lambda: next(left, 10.0))
        assert world.blobs.uploads
        await world.controller.delete(ANN, job_id)
        await world.assemble()
        assert not world.blobs.uploads
        await world.sweep()
        assert not world.store.assemblies
        assert not world.blobs.blobs
        assert not world.store.states

    asyncio.run(story())


@pytest.mark.parametrize("swept", [True, False])
def test_a_job_that_is_deleted_while_its_file_is_completed_leaves_nothing(swept: bool) -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 1)
        put = world.blobs.put

        async def late(*arguments: Any) -> None:
            await world.controller.delete(ANN, job.meta.job_id)
            if swept:
                await world.sweep()
            await put(*arguments)

        world.blobs.put = late  # type: ignore[method-assign]
        await world.assemble()
        assert not world.blobs.blobs
        assert not world.store.assemblies

    asyncio.run(story())


def test_a_file_goes_with_its_job() -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 30)
        await world.assemble()
        assert len(world.blobs.blobs) == 1
        await world.controller.delete(ANN, job.meta.job_id)
        await world.sweep()
        assert not world.blobs.blobs
        assert not world.store.assemblies

    asyncio.run(story())


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


@pytest.mark.parametrize(
    ("body", "seconds"),
    [("nothing", 0), ('{"v":1,"job":"x"}', 0), ('{"v":1,"job":["x"]}', 0), ('{"v":2,"job":"x"}', 60), ("[]", 0)],
)
def test_a_message_that_can_not_be_read_stays(body: str, seconds: int) -> None:
    async def story() -> None:
        world = World()
        receipt = world.assembly.add(body)
        batch = world.assembly.receive(1)
        from sift.queue.ports import Received

        received = [Received(r, r, m.body) for r, m in batch]
        assert await world.assembler.run_batch(received, lambda: 120.0) == [receipt]
        assert world.assembly.waiting[receipt].visible_at == world.clock.now + seconds * 1000

    asyncio.run(story())


def test_a_message_of_a_live_job_is_done_with() -> None:
    async def story() -> None:
        world = World()
        job = await world.submit(1)
        await world.assembly.send([AssemblyMessage(job.meta.job_id)])
        assert await world.assemble() == []
        assert not world.store.assemblies

    asyncio.run(story())


def test_an_assembly_is_small() -> None:
    """One write unit for the file of a usual job: its parts are ten at 64 MiB of content that compresses to 50."""
    from sift.store import codec

    assembly = Assembly(
        "job_01M8MZ2A0038NKRKAYDXR834MK", "0" * 16, {n: _free() for n in range(32)}, 0, 1, 9_000,
        tuple('"' + "0" * 32 + '"' for _ in range(10)), "u" * 128,
    )  # fmt: skip
    assert len(json.dumps(codec.to_wire(codec.assembly_item(assembly)))) < 4_000
    assert page("x").body
