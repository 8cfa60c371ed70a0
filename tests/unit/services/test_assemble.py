"""Results files are written in parts, whatever dies in between."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sift import logs
from sift.assembly import Assembly, AssemblyMessage
from sift.jobs import Flight
from sift.queue.ports import Received
from sift.services.assemble import MOST_RESTARTS
from sift.store import codec
from tests.unit.services.faults import Fault, Killed, at_number
from tests.unit.services.results_files import check, ended, lines, write_part
from tests.unit.services.world import ANN, World


def test_without_time_it_goes_on_with_a_new_message() -> None:
    async def story() -> None:
        world = World()
        job = await ended(world, 30)
        steps = 0
        while world.assembly.waiting:
            ((receipt, message),) = world.assembly.receive(1)
            await write_part(world, job)
            world.assembly.delete(receipt)
            steps += 1
            assert message.receives == 1
        assert steps == len(world.store.assemblies[job.meta.job_id].parts) > 3
        check(await lines(world, job), world, job)

    asyncio.run(story())


def test_lines_say_whose_file_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    async def story() -> None:
        world = World()
        job = await ended(world, 1)
        world.restart(at_number(0, Fault.REQUEST_LOST))
        monkeypatch.setattr("sift.services.judge._log.warning", lambda *_: told.append(logs.subject()))
        assert len(await world.assemble()) == 1
        assert told == [{"job_id": job.meta.job_id}]
        assert logs.subject() == {}

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
        await write_part(world, job)
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
        await write_part(world, job)
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
        await write_part(world, job)
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


@pytest.mark.parametrize(
    ("body", "seconds"),
    [("nothing", 0), ('{"v":1,"job":"x"}', 0), ('{"v":1,"job":["x"]}', 0), ('{"v":2,"job":"x"}', 60), ("[]", 0)],
)
def test_a_message_that_can_not_be_read_stays(body: str, seconds: int) -> None:
    async def story() -> None:
        world = World()
        receipt = world.assembly.add(body)
        received = [Received(r, r, m.body) for r, m in world.assembly.receive(1)]
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
    assembly = Assembly(
        "job_01M8MZ2A0038NKRKAYDXR834MK", "0" * 16, {n: Flight(0) for n in range(32)}, 0, 1, 9_000,
        tuple('"' + "0" * 32 + '"' for _ in range(10)), "u" * 128,
    )  # fmt: skip
    assert len(json.dumps(codec.to_wire(codec.assembly_item(assembly)))) < 4_000
