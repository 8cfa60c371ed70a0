"""The worker's targets that come back: busy ones, and those whose workers died."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift.errors import TargetBusy
from sift.jobs import Flight
from sift.services.submit import Submitted
from sift.services.work import BUSY_FOR_SECONDS, BUSY_MOST_SECONDS, busy_wait
from sift.specs import Spec
from sift.store.ports import Outcome
from tests.unit.services.faults import Killed
from tests.unit.services.world import ANN, MINUTE, NOW, VISIBILITY_SECONDS, World, page, urls


def outcome(world: World, job: Submitted, index: int = 0) -> Outcome:
    return world.store.outcomes[job.meta.job_id, index]


# busy


@given(st.floats(0, 10_000), st.floats(0, 1), st.none() | st.floats(0, 10_000))
def test_how_long_a_busy_target_waits(elapsed: float, jitter: float, retry_after: float | None) -> None:
    wait = busy_wait(elapsed, retry_after, jitter)
    assert wait >= (retry_after or 0)
    assert 1.5 <= busy_wait(elapsed, None, jitter) <= BUSY_MOST_SECONDS * 1.25
    assert busy_wait(elapsed, None, jitter) <= busy_wait(elapsed + 1, None, jitter)
    assert busy_wait(elapsed, None, 0) <= busy_wait(elapsed, None, jitter)


def test_the_first_wait_is_about_two_seconds_and_the_last_about_a_minute() -> None:
    assert busy_wait(0, None, 0.5) == 2
    assert busy_wait(10_000, None, 0.5) == 60


def test_a_busy_target_comes_back(world: World) -> None:
    async def story() -> None:
        world.site.answers[urls(1)[0]] = [TargetBusy("429", status=429), TargetBusy("503"), page("at last")]
        job = await world.submit(1)
        (receipt,) = await world.deliver()
        first = world.state(job).flight[0]
        assert (first.claims, first.busy_since) == (0, NOW)
        assert NOW + 1_000 <= first.until <= NOW + 3_000
        assert world.state(job).running(NOW) == 0, "nobody holds it while it waits"
        slots = (await world.reader.page(ANN, job.meta.job_id, 0, 10, lambda slot: True)).slots
        assert [(slot.status, slot.attempts) for slot in slots] == [("pending", 1)]
        assert 1_000 <= world.queue.waiting[receipt].visible_at - NOW <= 3_000
        world.clock.now += 3_000
        assert await world.deliver() == [receipt]
        assert world.state(job).flight[0].busy_since == NOW
        world.clock.now += 5_000
        assert await world.deliver() == []
        world.check(job.meta.job_id, ["done"])
        assert outcome(world, job).document["attempts"] == 3
        assert world.state(job).status == "done"

    asyncio.run(story())


def test_retry_after_is_honoured(world: World) -> None:
    async def story() -> None:
        world.site.answers[urls(1)[0]] = [TargetBusy("429", retry_after=120), page("at last")]
        job = await world.submit(1)
        (receipt,) = await world.deliver()
        assert world.queue.waiting[receipt].visible_at == NOW + 120_000
        world.clock.now += 120_000
        await world.deliver()
        world.check(job.meta.job_id, ["done"])

    asyncio.run(story())


def test_a_copy_of_the_message_does_not_cut_the_wait_short(world: World) -> None:
    async def story() -> None:
        world.site.answers[urls(1)[0]] = [TargetBusy("429", retry_after=120), page("at last")]
        job = await world.submit(1)
        (receipt,) = await world.deliver()
        copy = world.queue.add(world.queue.waiting[receipt].body)
        for _ in range(30):
            await world.deliver()
            world.clock.now += 1_000
        assert copy in world.queue.waiting
        assert len(world.site.fetched) == 1
        assert world.queue.waiting[copy].visible_at >= NOW + 120_000
        world.clock.now = NOW + 122_000
        await world.deliver()
        world.check(job.meta.job_id, ["done"])
        assert len(world.site.fetched) == 2

    asyncio.run(story())


def test_a_busy_target_waits_through_a_pause(world: World) -> None:
    async def story() -> None:
        world.site.answers[urls(1)[0]] = [TargetBusy("429", retry_after=120), page("at last")]
        job = await world.submit(1)
        await world.deliver()
        await world.store.pause(job.meta.job_id, "pausing", NOW)
        await world.advancer.advance(job.meta.job_id)
        assert world.state(job).status == "paused", "a wait is no lease"
        await world.controller.resume(ANN, job.meta.job_id)
        world.clock.now = NOW + 119_000
        await world.deliver()
        assert len(world.site.fetched) == 1
        world.clock.now = NOW + 122_000
        await world.deliver()
        world.check(job.meta.job_id, ["done"])

    asyncio.run(story())


def test_a_target_that_stays_busy_fails_after_ten_minutes(world: World) -> None:
    async def story() -> None:
        world.site.answers[urls(1)[0]] = [TargetBusy("It answered 429.", status=429)]
        job = await world.submit(1)
        while not world.quiet():
            await world.drain()
            world.clock.now += 1_000
        world.check(job.meta.job_id, ["failed"])
        error = outcome(world, job).document["error"]
        assert (error["code"], error["status"]) == ("busy", 429)
        ended = world.state(job).ended_at
        assert ended is not None
        # The next wait (a minute and a quarter at most) would have ended after ten minutes.
        assert (BUSY_FOR_SECONDS - 76) * 1_000 <= ended - NOW <= BUSY_FOR_SECONDS * 1_000
        assert 10 <= len(world.site.fetched) <= 40

    asyncio.run(story())


@pytest.mark.parametrize("copied", [True, False])
def test_a_busy_target_that_is_given_up_is_looked_for_in_the_archive(world: World, copied: bool) -> None:
    async def story() -> None:
        url = urls(1)[0]
        world.site.answers[url] = [TargetBusy("It answered 503.", status=503)]
        if copied:
            world.site.copies[url] = page("from the archive")
        job = await world.submit(targets=[Spec(url, {"recover": True})])
        while not world.quiet():
            await world.drain()
            world.clock.now += 1_000
        world.check(job.meta.job_id, ["done" if copied else "failed"])
        found = outcome(world, job)
        if copied:
            assert found.content == b"from the archive"
        else:
            assert (found.document["error"]["code"], found.document["error"]["status"]) == ("busy", 503)
        assert len(world.site.fetched) >= 10, "not before it is given up"

    asyncio.run(story())


def test_a_busy_target_that_is_given_up_is_not_looked_for_unasked(world: World) -> None:
    async def story() -> None:
        url = urls(1)[0]
        world.site.answers[url] = [TargetBusy("It answered 503.", retry_after=601, status=503)]
        world.site.copies[url] = page("from the archive")
        job = await world.submit(1)
        assert await world.deliver() == []
        world.check(job.meta.job_id, ["failed"])

    asyncio.run(story())


def test_a_wait_beyond_ten_minutes_fails_at_once(world: World) -> None:
    async def story() -> None:
        world.site.answers[urls(1)[0]] = [TargetBusy("It answered 503.", retry_after=601)]
        job = await world.submit(1)
        assert await world.deliver() == []
        assert outcome(world, job).document["error"]["code"] == "busy"

    asyncio.run(story())


def test_a_busy_target_does_not_count_as_crashed(world: World) -> None:
    async def story() -> None:
        world.site.answers[urls(1)[0]] = [*[TargetBusy("429")] * 9, page("at last")]
        job = await world.submit(1)
        while not world.quiet():
            await world.deliver()
            world.clock.now += 1_000
        world.check(job.meta.job_id, ["done"])
        assert len(world.site.fetched) == 10

    asyncio.run(story())


# crashes


def crash_loop(world: World, count: int) -> Any:
    """A job whose first target takes its worker with it whenever it is fetched."""
    world.site.answers[urls(1)[0]] = [Killed()]
    return world.submit(count)


def test_a_target_that_kills_its_workers_is_given_up(world: World) -> None:
    async def story() -> None:
        job = await crash_loop(world, 10)
        await world.run_on(minutes=60)
        world.check(job.meta.job_id, ["failed", *["done"] * 9])
        error = outcome(world, job).document["error"]
        assert error["code"] == "crashed"
        assert error["hint"]
        assert world.site.fetched.count(urls(1)[0]) == 4

    asyncio.run(story())


def test_a_suspect_runs_alone_after_its_batch_mates(world: World) -> None:
    async def story() -> None:
        job = await world.submit(5)
        suspect = urls(3)[2]
        for claim in range(2):  # claimed twice and never finished
            world.clock.now += 1
            await world.store.claim(job.meta.job_id, 2, world.clock.now, world.clock.now)
            assert world.state(job).flight[2].claims == claim + 1
        world.clock.now += MINUTE
        assert await world.deliver() == []
        assert world.site.fetched[-1] == suspect
        assert world.site.at_once[-1] == {suspect}
        assert world.site.fetched.count(suspect) == 1
        world.check(job.meta.job_id, ["done"] * 5)

    asyncio.run(story())


def test_batch_mates_of_a_suspect_are_not_charged_for_it(world: World) -> None:
    async def story() -> None:
        job = await crash_loop(world, 10)
        batches: list[frozenset[str]] = []
        for _ in range(30):
            before = len(world.site.at_once)
            try:
                await world.deliver()
            except Killed:
                await world.bury_process()
            batches.append(frozenset().union(*world.site.at_once[before:]))
            world.clock.now += VISIBILITY_SECONDS * 1_000
            if world.quiet():
                break
        world.check(job.meta.job_id, ["failed", *["done"] * 9])
        assert all(entry.document["error"] is None for key, entry in world.store.outcomes.items() if key[1])

    asyncio.run(story())


def test_the_fifth_claim_does_not_fetch(world: World) -> None:
    async def story() -> None:
        job = await world.submit(1)
        worn = replace(world.state(job), flight={0: Flight(NOW - 1, claims=4)})
        world.store.states[job.meta.job_id] = worn
        await world.deliver()
        assert world.site.fetched == []
        assert outcome(world, job).document["error"]["code"] == "crashed"
        assert outcome(world, job).document["attempts"] == 5

    asyncio.run(story())
