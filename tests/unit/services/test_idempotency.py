"""The same work, submitted again: when it is the same job, and when it is not."""

from __future__ import annotations

import asyncio

import pytest

from sift.errors import CallerBusy, Conflict, TargetFailed
from sift.specs import Spec
from tests.unit.services.faults import Fault, at
from tests.unit.services.world import ANN, BOB, HOUR, MINUTE, World, urls


def test_the_same_work_is_the_same_job_until_it_expires(world: World) -> None:
    async def story() -> None:
        first = await world.submit()
        live = await world.submit()
        assert (live.reused, live.meta, live.state) == (True, first.meta, world.state(first))
        await world.run_on()
        ended = await world.submit()
        assert (ended.reused, ended.state.status) == (True, "done")
        world.clock.now += HOUR - 1_000
        assert (await world.submit()).reused
        world.clock.now += 2_000
        again = await world.submit()
        assert not again.reused
        await world.run_on()
        world.check(again.meta.job_id)

    asyncio.run(story())


def test_what_cannot_change_a_result_does_not_make_other_work(world: World) -> None:
    async def story() -> None:
        first = await world.submit(metadata={"run": "1"}, window=3)
        again = await world.submit(metadata={"run": "2"}, window=9)
        assert again.reused
        assert again.meta == first.meta

    asyncio.run(story())


def test_other_work_and_other_callers_get_their_own_job(world: World) -> None:
    async def story() -> None:
        jobs = [
            await world.submit(targets=[Spec("https://example.com/")]),
            await world.submit(targets=[Spec("https://example.com/", {"mode": "raw"})]),
            await world.submit(targets=[Spec("https://example.com/", {}, "label")]),
            await world.submit(targets=[Spec("https://example.com/")], who=BOB),
        ]
        assert not any(job.reused for job in jobs)
        assert len({job.meta.job_id for job in jobs}) == 4

    asyncio.run(story())


def test_a_job_without_a_result_does_not_stand_for_the_work(world: World) -> None:
    async def story() -> None:
        cancelled = await world.submit()
        await world.controller.cancel(ANN, cancelled.meta.job_id)
        world.site.answers = {url: [TargetFailed("timeout", "It took too long.")] for url in urls(3)}
        failed = await world.submit()
        assert not failed.reused
        await world.run_on()
        assert world.state(failed).status == "failed"
        world.site.answers.popitem()
        partial = await world.submit()
        assert not partial.reused
        await world.run_on()
        assert world.state(partial).status == "partial"
        assert (await world.submit()).meta == partial.meta

    asyncio.run(story())


def test_a_failed_job_is_replaced_even_before_its_record_is_gone(world: World) -> None:
    async def story() -> None:
        world.site.answers = {url: [TargetFailed("timeout", "It took too long.")] for url in urls(3)}
        world.restart(at("store.drop_idempotency", Fault.REQUEST_LOST))
        failed = await world.submit()
        await world.drain()
        assert world.state(failed).status == "failed"
        assert len(world.store.idempotency) == 1
        again = await world.submit()
        assert not again.reused
        # The outbox repairs what was left undone, and must not take the new job's record.
        await world.sweep()
        (record,) = world.store.idempotency.values()
        assert record.job_id == again.meta.job_id

    asyncio.run(story())


def test_a_key_takes_the_place_of_the_content(world: World) -> None:
    async def story() -> None:
        first = await world.submit(2, idempotency_key="k")
        assert (await world.submit(2, idempotency_key="k")).meta == first.meta
        other_key = await world.submit(2, idempotency_key="K")
        no_key = await world.submit(2)
        other_caller = await world.submit(2, idempotency_key="k", who=BOB)
        made = {job.meta.job_id for job in (first, other_key, no_key, other_caller)}
        assert len(made) == 4

    asyncio.run(story())


def test_a_key_for_other_work_is_a_conflict(world: World) -> None:
    async def story() -> None:
        first = await world.submit(2, idempotency_key="k")
        before = world.contents()
        with pytest.raises(Conflict) as caught:
            await world.submit(3, idempotency_key="k")
        assert caught.value.code == "idempotency_mismatch"
        assert caught.value.extra == {"job_id": first.meta.job_id}
        assert world.contents() == before

    asyncio.run(story())


def test_a_key_stands_for_its_job_whatever_became_of_it(world: World) -> None:
    async def story() -> None:
        first = await world.submit(2, idempotency_key="k")
        await world.controller.cancel(ANN, first.meta.job_id)
        again = await world.submit(2, idempotency_key="k")
        assert (again.reused, again.state.status) == (True, "cancelled")
        world.clock.now += HOUR + MINUTE
        assert not (await world.submit(3, idempotency_key="k")).reused

    asyncio.run(story())


def test_fresh_runs_anew_and_keeps_no_record(world: World) -> None:
    async def story() -> None:
        first = await world.submit()
        fresh = await world.submit(fresh=True)
        keyed = await world.submit(fresh=True, idempotency_key="k")
        assert len({job.meta.job_id for job in (first, fresh, keyed)}) == 3
        assert (fresh.meta.idempotency, keyed.meta.idempotency, keyed.meta.explicit_key) == (None, None, False)
        (record,) = world.store.idempotency.values()
        assert record.job_id == first.meta.job_id
        assert (await world.submit()).meta == first.meta

    asyncio.run(story())


@pytest.mark.parametrize("key", [None, "k"])
def test_the_same_work_at_the_same_time_is_one_job(world: World, key: str | None) -> None:
    async def story() -> None:
        submitted = await asyncio.gather(*(world.submit(idempotency_key=key) for _ in range(8)))
        assert [job.reused for job in submitted].count(False) == 1
        assert len({job.meta.job_id for job in submitted}) == 1
        assert len(world.store.metas) == 1
        assert len(world.queue.waiting) == 3

    asyncio.run(story())


def test_a_stale_record_is_replaced_by_one(world: World) -> None:
    async def story() -> None:
        first = await world.submit()
        await world.run_on()
        world.clock.now += HOUR + MINUTE
        submitted = await asyncio.gather(*(world.submit() for _ in range(8)))
        assert [job.reused for job in submitted].count(False) == 1
        assert len({job.meta.job_id for job in submitted} | {first.meta.job_id}) == 2

    asyncio.run(story())


def test_one_key_for_two_works_at_the_same_time(world: World) -> None:
    async def story() -> None:
        answers = await asyncio.gather(
            *(world.submit(count, idempotency_key="k") for count in (2, 3)), return_exceptions=True
        )
        assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "Submitted"]
        assert len(world.store.metas) == 1

    asyncio.run(story())


def test_the_cap_of_a_caller_does_not_hide_its_own_job(world: World) -> None:
    async def story() -> None:
        for count in range(1, 6):
            await world.submit(count)
        with pytest.raises(CallerBusy):
            await world.submit(6)
        assert (await world.submit(3)).reused

    asyncio.run(story())
