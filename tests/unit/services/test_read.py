"""Reading: whose jobs are seen, what a slot says, and how long a held read is held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sift import ids
from sift.errors import NotFound
from sift.identity import Identity, Limits
from sift.services.outcomes import INLINE_WHOLE_BYTES
from sift.services.read import PAGE_CONTENT_BYTES, Page
from sift.services.slots import Slot
from sift.targets import Content
from tests.unit.services.world import ANN, BOB, HOUR, MINUTE, NOW, World, urls


def anything(_: Slot) -> bool:
    return True


async def whole(world: World, job_id: str, limit: int = 100, accept: Callable[[Slot], bool] = anything) -> list[Slot]:
    """All pages of a job, each but the last one full."""
    slots: list[Slot] = []
    first: int | None = 0
    while first is not None:
        page: Page = await world.reader.page(ANN, job_id, first, limit, accept)
        assert page.next_index is None or len(page.slots) == limit
        slots += page.slots
        first = page.next_index
    return slots


def test_a_job_is_its_callers_alone(world: World) -> None:
    async def story() -> None:
        job = await world.submit()
        job_id = job.meta.job_id
        same = Identity("acme", "ann", "another-key")
        assert await world.reader.job(same, job_id) == (job.meta, job.state)
        refusals = []
        for who, what in (
            (BOB, job_id), (Identity("other", "ann", "k"), job_id), (ANN, ids.new_job_id(NOW)), (ANN, "no id"),
            (ANN, job_id.lower()), (ANN, f"{job_id}#0"),
        ):  # fmt: skip
            for read in (
                world.reader.job(who, what),
                world.reader.wait(who, what, 5),
                world.reader.slot(who, what, 0),
                world.reader.page(who, what, 0, 10, anything),
                world.controller.cancel(who, what),
            ):
                with pytest.raises(NotFound) as caught:
                    await read
                refusals.append((caught.value.code, caught.value.detail, caught.value.hint))
        assert len(set(refusals)) == 1, "nothing tells another's job from none"

    asyncio.run(story())


def test_an_expired_job_is_gone_though_its_items_are_not(world: World) -> None:
    async def story() -> None:
        job = await world.submit()
        await world.drain()
        world.clock.now += HOUR - 1
        await world.reader.job(ANN, job.meta.job_id)
        world.clock.now += 1
        with pytest.raises(NotFound):
            await world.reader.job(ANN, job.meta.job_id)

    asyncio.run(story())


def test_reading_writes_nothing(world: World) -> None:
    async def story() -> None:
        job_id = (await world.submit(5, window=2)).meta.job_id
        await world.deliver(1)
        before = world.contents()
        life = world.restart()
        await world.reader.job(ANN, job_id)
        await world.reader.wait(ANN, job_id, 2)
        await whole(world, job_id)
        await world.reader.slot(ANN, job_id, 0)
        assert world.contents() == before
        assert all(call.startswith("store.get_") for call in life.calls), life.calls

    asyncio.run(story())


def test_slots_in_every_state(world: World) -> None:
    async def story() -> None:
        job_id = (await world.submit(5, window=3)).meta.job_id
        await world.deliver(1)
        await world.store.claim(job_id, 1, world.clock.now + MINUTE, world.clock.now)
        slots = await whole(world, job_id)
        assert [slot.status for slot in slots] == ["done", "running", "pending", "pending", "pending"]
        assert [slot.url for slot in slots] == urls(5)
        assert [slot.attempts for slot in slots] == [1, 1, 0, 0, 0]
        assert slots[0].outcome is not None
        assert all(slot.outcome is None and slot.error is None for slot in slots[1:])
        world.clock.now += MINUTE
        assert (await world.reader.slot(ANN, job_id, 1)).status == "pending", "its lease has ended"
        assert [slot.index for slot in await whole(world, job_id, 1, lambda slot: slot.status == "pending")] == [
            1,
            2,
            3,
            4,
        ]

    asyncio.run(story())


def test_a_page_with_contents_reads_no_more_than_an_answer_holds() -> None:
    async def story() -> None:
        count, size = 250, INLINE_WHOLE_BYTES
        world = World(limits=Limits(targets_per_job=count, jobs_per_caller=9, retained_jobs=9, job_bytes=10**9))
        world.site.answers = {url: [Content(b"0" * size, "text/plain")] for url in urls(count)}
        job_id = (await world.submit(count)).meta.job_id
        await world.drain()
        page = await world.reader.page(ANN, job_id, 0, 1_000, anything, content=True)
        assert page.next_index == len(page.slots) == PAGE_CONTENT_BYTES // size + 1
        onward = await world.reader.page(ANN, job_id, page.next_index, 1_000, anything, content=True)
        assert onward.slots[0].index == page.next_index
        assert len((await world.reader.page(ANN, job_id, 0, 1_000, anything)).slots) == count

    asyncio.run(story())


def test_slots_of_a_cancelled_job(world: World) -> None:
    async def story() -> None:
        job_id = (await world.submit(4, window=2)).meta.job_id
        await world.deliver(1)
        await world.controller.cancel(ANN, job_id)
        slots = await whole(world, job_id)
        assert [slot.status for slot in slots] == ["done", "cancelled", "cancelled", "cancelled"]
        assert [(slot.error or {}).get("code") for slot in slots] == [None, *["cancelled"] * 3]
        assert all(slot.error and slot.error["hint"] for slot in slots[1:])

    asyncio.run(story())


def test_slots_of_a_job_that_ran_out_of_time() -> None:
    async def story() -> None:
        world = World(deadline_seconds=60)
        job_id = (await world.submit(4, window=2)).meta.job_id
        await world.deliver(1)
        world.clock.now += MINUTE
        await world.sweep()
        slots = await whole(world, job_id)
        assert [slot.status for slot in slots] == ["done", "failed", "failed", "failed"]
        assert [(slot.error or {}).get("code") for slot in slots] == [None, *["deadline"] * 3]

    asyncio.run(story())


def test_an_outcome_that_is_not_counted_yet_is_not_shown(world: World) -> None:
    """The worker has stored it and not finished: the count and the slots must tell the same."""

    async def story() -> None:
        job_id = (await world.submit(2)).meta.job_id
        await world.deliver(1)
        stored = world.store.outcomes[job_id, 0]
        world.store.outcomes[job_id, 1] = type(stored)(1, stored.lease, "done", 1, stored.document, b"x")
        assert (await world.reader.slot(ANN, job_id, 1)).status == "pending"

    asyncio.run(story())


@pytest.mark.parametrize("limit", [1, 7, 100, 1_000])
def test_pages_are_never_silently_cut(limit: int) -> None:
    async def story() -> None:
        world = World()
        job_id = (await world.submit(250)).meta.job_id
        await world.run_on()
        slots = await whole(world, job_id, limit)
        assert [slot.index for slot in slots] == list(range(250))
        even = await whole(world, job_id, limit, lambda slot: slot.index % 2 == 0)
        assert [slot.index for slot in even] == list(range(0, 250, 2))
        assert await whole(world, job_id, limit, lambda slot: slot.status == "failed") == []

    asyncio.run(story())


@pytest.mark.parametrize("index", [-1, 3, 10**12])
def test_a_target_that_the_job_does_not_have(world: World, index: int) -> None:
    async def story() -> None:
        job_id = (await world.submit(3)).meta.job_id
        with pytest.raises(NotFound):
            await world.reader.slot(ANN, job_id, index)

    asyncio.run(story())


def held(world: World, job_id: str, seconds: float) -> Any:
    return world.reader.wait(ANN, job_id, seconds)


def test_a_held_read_ends_when_the_seconds_have_passed(world: World) -> None:
    async def story() -> None:
        job = await world.submit()
        assert await held(world, job.meta.job_id, 20) == (job.meta, job.state)
        assert world.clock.now == NOW + 20_000
        await held(world, job.meta.job_id, 0)
        assert world.clock.now == NOW + 20_000

    asyncio.run(story())


def test_a_held_read_ends_when_something_has_changed(world: World) -> None:
    async def story() -> None:
        job = await world.submit(5)
        sleep = world.clock.sleep

        async def sleep_and_work(seconds: float) -> None:
            await sleep(seconds)
            if world.clock.now - NOW >= 3_000:
                await world.deliver(1)

        world.clock.sleep = sleep_and_work  # type: ignore[method-assign]
        _, state = await held(world, job.meta.job_id, 20)
        assert (state.status, state.done) == ("running", 1)
        assert NOW + 3_000 <= world.clock.now <= NOW + 4_000

    asyncio.run(story())


def test_a_read_of_an_ended_job_is_not_held(world: World) -> None:
    async def story() -> None:
        job = await world.submit()
        await world.drain()
        await held(world, job.meta.job_id, 20)
        assert world.clock.now == NOW

    asyncio.run(story())
