"""Two of everything at once: workers over one target, late ones, and answers that never came."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from sift.errors import TargetBusy
from sift.services.submit import Submitted
from sift.targets import Content
from tests.unit.services.faults import Fault, at
from tests.unit.services.world import ANN, LEASE_SECONDS, NOW, VISIBILITY_SECONDS, World, page, urls

URL = urls(1)[0]


def second_copy(world: World) -> str:
    """Another message of the same target, as the sweeper or a queue that delivers twice would make."""
    return world.queue.add(next(iter(world.queue.waiting.values())).body)


def test_a_copy_of_a_held_target_waits_for_the_lease_to_end(world: World) -> None:
    async def story() -> None:
        job = await world.submit(1)
        copy = second_copy(world)
        kept: list[str] = []

        async def meanwhile() -> None:
            kept.extend(await world.deliver(1, worker=world.make_worker()))

        world.site.during[URL] = meanwhile
        assert await world.deliver(1) == []
        assert kept == [copy], "it may be the last copy"
        lease_ends = NOW + LEASE_SECONDS * 1_000
        assert lease_ends < world.queue.waiting[copy].visible_at < lease_ends + 10_000
        world.check(job.meta.job_id, ["done"])
        world.clock.now = world.queue.waiting[copy].visible_at
        assert await world.deliver() == []
        assert world.site.fetched == [URL]

    asyncio.run(story())


def test_two_copies_in_one_batch_are_one_fetch(world: World) -> None:
    async def story() -> None:
        job = await world.submit(1)
        second_copy(world)
        assert len(await world.deliver()) == 1
        assert world.site.fetched == [URL]
        world.check(job.meta.job_id, ["done"])

    asyncio.run(story())


async def overtaken(world: World, job: Submitted, between: Callable[[], Awaitable[None]] | None = None) -> None:
    """A worker fetches for so long that its lease ends and another one takes over."""
    late = world.make_worker()

    async def meanwhile() -> None:
        world.clock.now += (LEASE_SECONDS + 20) * 1_000
        if between is not None:
            await between()

    world.site.during[URL] = meanwhile
    world.site.answers[URL] = [page("second"), page("first, and late")]
    second_copy(world)
    await world.deliver(1, worker=late)


def test_a_zombie_changes_nothing(world: World) -> None:
    async def story() -> None:
        job = await world.submit(1)

        async def successor() -> None:
            assert await world.deliver(1) == []

        await overtaken(world, job, successor)
        world.check(job.meta.job_id, ["done"])
        assert world.store.outcomes[job.meta.job_id, 0].content == b"second"
        assert world.state(job).done == 1
        assert len(world.bus.published) == 1

    asyncio.run(story())


def test_a_zombies_large_content_does_not_replace_its_successors(world: World) -> None:
    async def story() -> None:
        bodies = [random.Random(seed).randbytes(50_000) for seed in range(2)]
        job = await world.submit(1)

        async def successor() -> None:
            await world.deliver(1)

        late = world.make_worker()

        async def meanwhile() -> None:
            world.clock.now += (LEASE_SECONDS + 20) * 1_000
            await successor()

        second_copy(world)
        world.site.during[URL] = meanwhile
        world.site.answers[URL] = [Content(body, "application/octet-stream") for body in bodies]
        await world.deliver(1, worker=late)
        stored = world.store.outcomes[job.meta.job_id, 0]
        assert stored.blob is not None
        assert world.blobs.blobs[stored.blob][0] == bodies[0]
        world.check(job.meta.job_id, ["done"])

    asyncio.run(story())


def test_a_late_worker_whose_successor_still_works_keeps_its_message(world: World) -> None:
    """The successor may yet crash: then the late one's message is what brings the target back."""

    async def story() -> None:
        job = await world.submit(1)

        async def successor() -> None:
            world.clock.now += (LEASE_SECONDS + 20) * 1_000
            claimed = await world.store.claim(job.meta.job_id, 0, world.clock.now + 77_000, world.clock.now)
            assert claimed.ok

        world.site.during[URL] = successor
        assert len(await world.deliver(1)) == 1
        assert world.state(job).done == 0
        await world.run_on()
        world.check(job.meta.job_id, ["done"])

    asyncio.run(story())


def test_a_late_worker_without_a_successor_still_counts(world: World) -> None:
    async def story() -> None:
        job = await world.submit(1)
        await overtaken(world, job)
        assert world.state(job).status == "done"
        await world.drain()
        world.check(job.meta.job_id, ["done"])

    asyncio.run(story())


@pytest.mark.parametrize(
    "call", ["store.claim", "store.put_outcome", "store.finish", "store.release", "store.settle", "store.hand_back"]
)
def test_a_change_that_the_sdk_repeats_counts_once(world: World, call: str) -> None:
    """Its first answer was lost: the second is a refusal that must be read as success."""

    async def story() -> None:
        if call == "store.hand_back":
            world.site.answers[URL] = [TargetBusy("429"), page("at last")]
        life = world.restart(at(call, Fault.REPEATED, times=100))
        job = await world.submit(6, window=2)
        for _ in range(60):
            await world.drain()
            world.clock.now += 1_000
        await world.sweep()
        assert call in life.calls
        world.check(job.meta.job_id, ["done"] * 6)
        assert sorted(set(world.site.fetched)) == urls(6)

    asyncio.run(story())


def test_a_repeated_claim_is_not_held_by_somebody_else(world: World) -> None:
    async def story() -> None:
        world.restart(at("store.claim", Fault.REPEATED))
        job = await world.submit(1)
        assert await world.deliver() == []
        assert world.site.fetched == [URL]
        world.check(job.meta.job_id, ["done"])
        assert world.store.outcomes[job.meta.job_id, 0].document["attempts"] == 1

    asyncio.run(story())


def test_a_repeated_release_is_sent(world: World) -> None:
    async def story() -> None:
        world.restart(at("store.release", Fault.REPEATED))
        job = await world.submit(4, window=2)
        await world.deliver()
        assert world.state(job).released == 4
        assert await world.queue.visible() == 2
        await world.drain()
        world.check(job.meta.job_id, ["done"] * 4)

    asyncio.run(story())


def test_workers_that_race_release_each_target_once(world: World) -> None:
    random.seed(7)  # two releases of one millisecond are told apart by chance

    async def story() -> None:
        job = await world.submit(60, window=8)
        workers = [world.make_worker() for _ in range(4)]
        while await world.queue.visible():
            await asyncio.gather(*(world.deliver(2, worker=worker) for worker in workers))
        world.check(job.meta.job_id, ["done"] * 60)
        assert sorted(world.site.fetched) == sorted(urls(60))
        assert world.queue.add("the next one") == "61", "each target was sent once"

    asyncio.run(story())


def test_a_cancel_during_a_fetch_keeps_its_outcome(world: World) -> None:
    async def story() -> None:
        job = await world.submit(3, window=1)

        async def cancel() -> None:
            _, state = await world.controller.cancel(ANN, job.meta.job_id)
            assert state.status == "cancelled"

        world.site.during[URL] = cancel
        assert await world.deliver() == []
        state = world.state(job)
        assert (state.status, state.done, dict(state.flight)) == ("cancelled", 1, {})
        assert world.store.outcomes[job.meta.job_id, 0].content == URL.encode()
        assert state.released == 1
        assert world.quiet()

    asyncio.run(story())


def test_a_fetch_that_outlives_the_deadline_does_not_count() -> None:
    async def story() -> None:
        world = World(deadline_seconds=60)
        job = await world.submit(2)

        async def deadline() -> None:
            world.clock.now += 60_000
            await world.sweep()

        world.site.during[URL] = deadline
        await world.deliver()
        state = world.state(job)
        assert (state.status, state.error, state.done, state.bytes) == ("failed", "deadline", 0, 0)

    asyncio.run(story())


@pytest.mark.parametrize("skew", [-4_000, 4_000])
def test_a_worker_whose_clock_is_a_little_off_still_gets_its_claims(world: World, skew: int) -> None:
    async def story() -> None:
        job = await world.submit(4, window=2)
        ahead = skew
        while not world.quiet():
            world.clock.now += ahead
            await world.deliver(2)
            world.clock.now -= ahead
            ahead = -ahead
        world.check(job.meta.job_id, ["done"] * 4)

    asyncio.run(story())


def test_visibility_never_hides_a_message_for_longer_than_the_queue_allows(world: World) -> None:
    async def story() -> None:
        job = await world.submit(1)
        await world.store.claim(job.meta.job_id, 0, NOW + 10**9, NOW)
        (kept,) = await world.deliver()
        assert world.queue.waiting[kept].visible_at - NOW == 43_200_000
        assert VISIBILITY_SECONDS < 43_200

    asyncio.run(story())
