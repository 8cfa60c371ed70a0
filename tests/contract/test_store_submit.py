"""Contract of the store: what a submission writes, once, and only within the caps."""

from __future__ import annotations

import asyncio
import dataclasses

from sift import ids
from sift.specs import RequestSpec, Spec
from sift.store.ports import CapReached, Committed, Duplicate, Segment, Store
from tests.contract.conftest import HOUR, NOW, submission


def test_commit_stores_the_whole_job(store: Store) -> None:
    async def story() -> None:
        made = submission(idempotency="k1")
        job_id = made.meta.job_id
        assert await store.commit(made, NOW) == Committed()
        assert await store.get_job(job_id) == (made.meta, made.state)
        assert await store.get_state(job_id) == made.state
        assert await store.get_segment(job_id, 0) == made.segments[0]
        assert await store.get_segment(job_id, 1) is None
        assert await store.get_idempotency("k1") == made.idempotency
        assert await store.live_jobs(0) == [job_id]
        assert await store.outbox(0) == []
        assert await store.count_jobs("acme/ann", NOW, 10) == 1
        assert await store.get_job(ids.new_job_id(NOW)) is None
        assert await store.get_idempotency("k2") is None

    asyncio.run(story())


def test_a_job_that_is_kept_for_ever_has_no_expiry(store: Store) -> None:
    async def story() -> None:
        made = submission(expires_in=None, idempotency="k")
        await store.commit(made, NOW)
        assert await store.get_job(made.meta.job_id) == (made.meta, made.state)
        assert made.state.expires_at is None
        assert await store.count_jobs("acme/ann", NOW + 10**12, 10) == 1
        assert isinstance(await store.commit(submission(idempotency="k"), NOW + 10**12), Duplicate)

    asyncio.run(story())


def test_the_same_work_is_committed_once(store: Store) -> None:
    async def story() -> None:
        first = submission(idempotency="k")
        await store.commit(first, NOW)
        second = submission(idempotency="k")
        assert await store.commit(second, NOW) == Duplicate(first.idempotency)  # type: ignore[arg-type]
        assert await store.get_job(second.meta.job_id) is None
        assert await store.get_segment(second.meta.job_id, 0) is None
        assert await store.live_jobs(0) == [first.meta.job_id]

    asyncio.run(story())


def test_a_commit_that_is_repeated_after_a_lost_answer_is_the_same_commit(store: Store) -> None:
    async def story() -> None:
        for idempotency in ("k", None):
            made = submission(idempotency=idempotency, caller=f"acme/{idempotency}", caller_cap=1)
            assert await store.commit(made, NOW) == Committed()
            assert await store.commit(made, NOW) == Committed()

    asyncio.run(story())


def test_a_stale_or_expired_record_is_replaced(store: Store) -> None:
    async def story() -> None:
        first = submission(idempotency="k")
        await store.commit(first, NOW)
        replaced = submission(idempotency="k", stale_job=first.meta.job_id)
        assert await store.commit(replaced, NOW) == Committed()
        beaten = submission(idempotency="k", stale_job=first.meta.job_id)
        assert isinstance(await store.commit(beaten, NOW), Duplicate)
        assert await store.commit(submission(idempotency="k"), NOW + 24 * HOUR) == Committed()

    asyncio.run(story())


def test_caps_are_exact_and_nothing_of_a_refused_job_is_stored(store: Store) -> None:
    async def story() -> None:
        for _ in range(2):
            assert await store.commit(submission(caller_cap=2), NOW) == Committed()
        refused = submission(caller_cap=2, idempotency="k")
        assert await store.commit(refused, NOW) == CapReached("caller")
        assert await store.get_job(refused.meta.job_id) is None
        assert await store.get_idempotency("k") is None
        other = submission(caller="acme/bob", shard_cap=2)
        assert await store.commit(other, NOW) == CapReached("shard")
        assert await store.commit(submission(caller="acme/bob", shard_cap=2, shard=1), NOW) == Committed()
        assert len(await store.live_jobs(0)) == 2
        assert len(await store.live_jobs(1)) == 1

    asyncio.run(story())


def test_caps_hold_under_a_race(store: Store) -> None:
    async def story() -> None:
        made = [submission(caller=f"acme/{n % 3}", caller_cap=2, shard_cap=5) for n in range(24)]
        answers = await asyncio.gather(*(store.commit(one, NOW) for one in made))
        assert answers.count(Committed()) == 5
        assert len(await store.live_jobs(0)) == 5
        for caller in ("acme/0", "acme/1", "acme/2"):
            assert await store.count_jobs(caller, NOW, 10) <= 2

    asyncio.run(story())


def test_one_of_many_equal_submissions_wins(store: Store) -> None:
    async def story() -> None:
        made = [submission(idempotency="k", caller_cap=50) for _ in range(16)]
        answers = await asyncio.gather(*(store.commit(one, NOW) for one in made))
        assert answers.count(Committed()) == 1
        winner = made[answers.index(Committed())].idempotency
        assert all(answer in (Committed(), Duplicate(winner)) for answer in answers)  # type: ignore[arg-type]

    asyncio.run(story())


def test_a_cap_of_zero_lets_nothing_in(store: Store) -> None:
    async def story() -> None:
        assert await store.commit(submission(caller_cap=0), NOW) == CapReached("caller")

    asyncio.run(story())


def test_requests_come_back_as_they_were_submitted(store: Store) -> None:
    async def story() -> None:
        made = submission()
        specs = [
            RequestSpec("/v1/x", "a", '{"model":"a","ü":1}', "mine", 2),
            RequestSpec("/v1/y", None, None, blob="jobs/j/inputs/1"),
        ]
        segment = Segment(0, specs)
        meta = dataclasses.replace(made.meta, kind="inference", total=2)
        await store.commit(dataclasses.replace(made, meta=meta, segments=[segment]), NOW)
        assert await store.get_segment(meta.job_id, 0) == segment
        assert await store.get_meta(meta.job_id) == meta

    asyncio.run(story())


def test_segments_can_be_written_ahead(store: Store) -> None:
    async def story() -> None:
        job_id = ids.new_job_id(NOW)
        segments = [Segment(n, [Spec("https://example.com/")] * 100) for n in range(30)] + [Segment(30, blob="b")]
        await store.put_segments(job_id, segments, 99)
        assert await store.get_segment(job_id, 29) == segments[29]
        assert await store.get_segment(job_id, 30) == segments[30]

    asyncio.run(story())


def test_only_its_own_idempotency_record_is_dropped(store: Store) -> None:
    async def story() -> None:
        made = submission(idempotency="k")
        await store.commit(made, NOW)
        await store.drop_idempotency("k", ids.new_job_id(NOW))
        assert await store.get_idempotency("k") == made.idempotency
        await store.drop_idempotency("k", made.meta.job_id)
        await store.drop_idempotency("k", made.meta.job_id)
        assert await store.get_idempotency("k") is None

    asyncio.run(story())


def test_slots_of_a_job_that_is_gone_can_be_freed(store: Store) -> None:
    async def story() -> None:
        made = submission(caller_cap=1, shard_cap=1)
        await store.commit(made, NOW)
        assert await store.caller_live("acme/ann") == [made.meta.job_id]
        await store.forget_live(made.meta.job_id, caller="acme/ann", shard=0)
        assert await store.commit(submission(caller_cap=1, shard_cap=1), NOW) == Committed()

    asyncio.run(story())
