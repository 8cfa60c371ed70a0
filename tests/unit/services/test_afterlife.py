"""What can be done with a job that has ended: retry, delete, list; and what expiry hides."""

from __future__ import annotations

import asyncio
import random

import pytest

from sift.blob_keys import content_key
from sift.errors import CallerBusy, Conflict, Invalid, NotFound, RequestRefused, TargetFailed
from sift.identity import Identity, Limits
from sift.specs import Spec
from sift.targets import Content
from tests.unit.services.world import ANN, BOB, HOUR, World, urls

GONE = TargetFailed("http_error", "404", status=404)


def test_retry_runs_what_failed_as_a_new_job() -> None:
    async def story() -> None:
        world = World()
        specs = [Spec(url, {"mode": "text"} if n == 1 else {}, f"id{n}") for n, url in enumerate(urls(4))]
        original = await world.submit(targets=specs, metadata={"run": "7"}, window=3)
        world.site.answers[urls(4)[1]] = [GONE]
        world.site.answers[urls(4)[3]] = [GONE]
        await world.run_on()
        before = world.state(original)
        world.site.answers.clear()
        retried = await world.retrier.retry(ANN, original.meta.job_id)
        assert not retried.reused
        assert retried.meta.retry_of == original.meta.job_id
        assert (retried.state.total, retried.state.window, retried.meta.metadata) == (2, 3, {"run": "7"})
        await world.run_on()
        world.check(retried.meta.job_id, ["done", "done"])
        slots = (await world.reader.page(ANN, retried.meta.job_id, 0, 9, lambda slot: True)).slots
        assert [(slot.url, slot.label, dict(slot.options), slot.attempts) for slot in slots] == [
            (specs[1].url, "id1", {"mode": "text"}, 2),
            (specs[3].url, "id3", {}, 2),
        ]
        assert world.state(original) == before
        again = await world.retrier.retry(ANN, original.meta.job_id)
        assert (again.reused, again.meta.job_id) == (True, retried.meta.job_id)

    asyncio.run(story())


def test_retry_of_a_cancelled_job_takes_what_never_ran() -> None:
    async def story() -> None:
        world = World()
        original = await world.submit(250, window=2)
        await world.deliver()
        await world.controller.cancel(ANN, original.meta.job_id)
        done = world.state(original).done
        retried = await world.retrier.retry(ANN, original.meta.job_id)
        assert retried.state.total == 250 - done
        await world.drain()
        world.check(retried.meta.job_id, ["done"] * (250 - done))

    asyncio.run(story())


def test_retry_is_refused_while_live_and_when_nothing_is_left() -> None:
    async def story() -> None:
        world = World()
        job_id = (await world.submit(2)).meta.job_id
        with pytest.raises(Conflict) as live:
            await world.retrier.retry(ANN, job_id)
        assert live.value.code == "invalid_state"
        await world.drain()
        with pytest.raises(Invalid) as nothing:
            await world.retrier.retry(ANN, job_id)
        assert nothing.value.code == "nothing_to_retry"
        with pytest.raises(NotFound):
            await world.retrier.retry(BOB, job_id)

    asyncio.run(story())


def test_retry_goes_through_the_caps_and_one_of_many_wins() -> None:
    async def story() -> None:
        world = World(limits=Limits(99, 1, 99, 10**6))
        job_id = (await world.submit(2)).meta.job_id
        await world.controller.cancel(ANN, job_id)
        answers = await asyncio.gather(*(world.retrier.retry(ANN, job_id) for _ in range(5)))
        assert len({answer.meta.job_id for answer in answers}) == 1
        assert [answer.reused for answer in answers].count(False) == 1
        other = await world.store.get_job(job_id)
        assert other is not None
        with pytest.raises(CallerBusy):
            await world.submit(1, metadata={"more": "work"}, targets=[Spec("https://example.com/more")])

    asyncio.run(story())


def test_a_deleted_job_is_gone_at_once_and_its_data_with_the_next_sweep() -> None:
    async def story() -> None:
        world = World()
        large = bytes(range(256)) * 400
        world.site.answers[urls(1)[0]] = [Content(b"".join(bytes([n * 7 % 251]) + large for n in range(9)), "x/y", {})]
        job = await world.submit(150, idempotency_key="mine")
        job_id = job.meta.job_id
        with pytest.raises(Conflict) as live:
            await world.controller.delete(ANN, job_id)
        assert live.value.code == "invalid_state"
        await world.drain()
        with pytest.raises(NotFound):
            await world.controller.delete(BOB, job_id)
        await world.controller.delete(ANN, job_id)
        for read in (world.reader.job, world.controller.cancel, world.retrier.retry, world.controller.delete):
            with pytest.raises(NotFound):
                await read(ANN, job_id)
        assert await world.reader.jobs(ANN, None, 9, lambda meta, state: True) == ([], None)
        again = await world.submit(150, idempotency_key="mine")
        assert not again.reused
        await world.drain()
        assert (await world.sweep()).removed == 1
        left = [key for key in world.store.outcomes if key[0] == job_id]
        left += [key for key in world.store.segments if key[0] == job_id]
        assert left == []
        assert job_id not in world.store.metas
        assert job_id not in world.store.states
        assert [key for key in world.blobs.blobs if job_id in key] == []
        assert (await world.sweep()).removed == 0
        world.check(again.meta.job_id)

    asyncio.run(story())


def test_a_removal_waits_for_a_fetch_that_outlived_the_cancel() -> None:
    async def story() -> None:
        world = World()
        job_id = (await world.submit(1)).meta.job_id
        noise = random.Random(5).randbytes(50_000)
        world.site.answers[urls(1)[0]] = [Content(noise, "x/y", {})]

        async def cancel_and_delete() -> None:
            await world.controller.cancel(ANN, job_id)
            await world.controller.delete(ANN, job_id)
            assert (await world.sweep()).removed == 0

        world.site.during[urls(1)[0]] = cancel_and_delete
        await world.deliver()
        assert (job_id, 0) in world.store.outcomes
        assert len(world.blobs.blobs) == 1
        assert (await world.sweep()).removed == 1
        assert not world.store.outcomes
        assert not world.blobs.blobs

    asyncio.run(story())


def test_a_removal_does_not_need_the_state_which_has_expired() -> None:
    async def story() -> None:
        world = World()
        world.site.answers[urls(1)[0]] = [Content(random.Random(5).randbytes(50_000), "x/y", {})]
        job_id = (await world.submit(1)).meta.job_id
        await world.drain()
        await world.controller.delete(ANN, job_id)
        del world.store.states[job_id]  # as the table's TTL does
        assert (await world.sweep()).removed == 1
        assert not world.store.outcomes
        assert not world.store.segments
        assert not world.blobs.blobs

    asyncio.run(story())


def test_a_removal_takes_what_no_outcome_names() -> None:
    async def story() -> None:
        world = World()
        job_id = (await world.submit(1)).meta.job_id
        await world.drain()
        await world.blobs.put(content_key(job_id, 0, 7), b"of a worker that lost its lease", "x/y")
        await world.controller.delete(ANN, job_id)
        assert (await world.sweep()).removed == 1
        assert not world.blobs.blobs

    asyncio.run(story())


def test_a_removal_that_runs_out_of_time_goes_on_later_and_waits_for_the_announcement() -> None:
    async def story() -> None:
        world = World()
        job_id = (await world.submit(350)).meta.job_id
        await world.drain()
        meta = world.store.metas[job_id]
        world.store.outboxes[meta.shard].add(job_id)  # its announcement is still due
        await world.controller.delete(ANN, job_id)
        published = len(world.bus.published)
        left = iter([55.0, 55.0, 55.0, *[5.0] * 50])
        report = await world.sweeper.sweep(lambda: next(left))
        assert len(world.bus.published) == published + 1
        assert report.removed == 0
        assert 0 < len(world.store.segments) < 4
        assert (await world.sweep()).removed == 1
        assert not world.store.segments
        assert not world.store.outcomes

    asyncio.run(story())


def test_the_list_is_newest_first_filtered_and_the_callers_own() -> None:
    async def story() -> None:
        world = World(jobs_total=50, limits=Limits(99, 50, 99, 10**6))
        made = []
        for n in range(7):
            made.append((await world.submit(targets=[Spec(f"https://example.com/list/{n}")])).meta.job_id)
            world.clock.now += 1000
        await world.submit(1, who=BOB)
        for job_id in made[:3]:
            await world.controller.cancel(ANN, job_id)
        everything = lambda meta, state: True  # noqa: E731
        first, more = await world.reader.jobs(ANN, None, 3, everything)
        assert [meta.job_id for meta, _ in first] == made[:3:-1]
        second, end = await world.reader.jobs(ANN, more, 50, everything)
        assert [meta.job_id for meta, _ in second] == made[3::-1]
        assert end is None
        cancelled, _ = await world.reader.jobs(ANN, None, 2, lambda meta, state: state.status == "cancelled")
        assert [meta.job_id for meta, _ in cancelled] == made[2:0:-1]
        assert await world.reader.jobs(Identity("acme", "eve", "k"), None, 9, everything) == ([], None)

    asyncio.run(story())


def test_an_expired_job_is_invisible_everywhere() -> None:
    async def story() -> None:
        world = World(ttl_seconds=3_600, limits=Limits(99, 1, 1, 10**6))
        job = await world.submit(2)
        job_id = job.meta.job_id
        await world.drain()
        with pytest.raises(CallerBusy) as full:
            await world.submit(targets=[Spec("https://example.com/other")])
        assert full.value.code == "store_full"
        assert (await world.submit(2)).reused
        world.clock.now += HOUR + 1_000
        for read in (
            world.reader.job(ANN, job_id),
            world.reader.slot(ANN, job_id, 0),
            world.reader.page(ANN, job_id, 0, 9, lambda slot: True),
            world.reader.wait(ANN, job_id, 0),
            world.controller.cancel(ANN, job_id),
            world.controller.pause(ANN, job_id),
            world.controller.resume(ANN, job_id),
            world.controller.delete(ANN, job_id),
            world.retrier.retry(ANN, job_id),
        ):
            with pytest.raises(NotFound):
                await read
        assert await world.reader.jobs(ANN, None, 9, lambda meta, state: True) == ([], None)
        again = await world.submit(2)  # the same work, and the only job that may be retained
        assert not again.reused
        assert again.meta.job_id != job_id

    asyncio.run(story())


def test_a_failed_or_cancelled_job_does_not_stand_for_its_work() -> None:
    async def story() -> None:
        world = World()
        for spoil in ("failed", "cancelled"):
            job = await world.submit(2)
            if spoil == "failed":
                for url in urls(2):
                    world.site.answers[url] = [GONE]
                await world.drain()
            else:
                await world.controller.cancel(ANN, job.meta.job_id)
            assert world.state(job).status == spoil
            world.site.answers.clear()
        last = await world.submit(2)
        assert not last.reused
        with pytest.raises(RequestRefused):
            await world.submit(0, targets=[])

    asyncio.run(story())
