"""Contract of the store: one target's life, each step a single conditional change."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from sift.jobs import Flight
from sift.store.ports import Outcome, Store
from tests.contract.conftest import NOW, submission

LEASE = NOW + 105_000


async def _job(store: Store, **kwargs: Any) -> str:
    made = submission(**kwargs)
    await store.commit(made, NOW)
    return made.meta.job_id


def _outcome(index: int = 0, lease: int = LEASE, **kwargs: Any) -> Outcome:
    return Outcome(index, lease, "done", 5, {"url": "u", "meta": {"n": 1.5, "ü": None}}, **kwargs)


def test_claim_takes_the_target_and_starts_the_job(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        changed = await store.claim(job_id, 1, LEASE, NOW)
        assert changed.ok
        assert changed.state is not None
        assert changed.state.status == "running"
        assert changed.state.started_at == NOW
        assert changed.state.flight[1] == Flight(LEASE, 1)
        assert changed.state.flight[0] == Flight(NOW - 5000)
        later = await store.claim(job_id, 0, LEASE + 9, NOW + 9)
        assert later.state is not None
        assert later.state.started_at == NOW
        assert await store.get_state(job_id) == later.state

    asyncio.run(story())


def test_claim_of_a_held_target_is_refused_until_its_lease_has_ended(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        first = await store.claim(job_id, 0, LEASE, NOW)
        refused = await store.claim(job_id, 0, LEASE + 7, LEASE - 1)
        assert not refused.ok
        assert refused.state == first.state
        again = await store.claim(job_id, 0, LEASE + 200_000, LEASE)
        assert again.ok
        assert again.state is not None
        assert again.state.flight[0] == Flight(LEASE + 200_000, 2)

    asyncio.run(story())


def test_claim_of_what_is_not_out_is_refused_with_the_state(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store, released=1)
        refused = await store.claim(job_id, 2, LEASE, NOW)
        assert not refused.ok
        assert refused.state is not None
        assert refused.state.released == 1
        nobody = await store.claim(submission().meta.job_id, 0, LEASE, NOW)
        assert (nobody.ok, nobody.state) == (False, None)

    asyncio.run(story())


def test_an_abandoned_claim_is_free_at_once_and_stays_charged(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        await store.claim(job_id, 0, LEASE, NOW)
        assert not (await store.abandon(job_id, 0, LEASE + 1, NOW)).ok
        changed = await store.abandon(job_id, 0, LEASE, NOW - 5_000)
        assert changed.ok
        assert changed.state is not None
        assert changed.state.flight[0] == Flight(NOW - 5_000, 1)
        assert not (await store.abandon(job_id, 0, LEASE, NOW)).ok
        again = await store.claim(job_id, 0, LEASE + 9, NOW)
        assert again.state is not None
        assert again.state.flight[0] == Flight(LEASE + 9, 2)
        assert not (await store.finish(job_id, 0, LEASE, "done", 1)).ok

    asyncio.run(story())


def test_finish_counts_the_target_once(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        await store.claim(job_id, 0, LEASE, NOW)
        await store.claim(job_id, 1, LEASE + 1, NOW)
        done = await store.finish(job_id, 0, LEASE, "done", 700)
        assert done.ok
        assert done.state is not None
        assert (done.state.done, done.state.failed, done.state.bytes) == (1, 0, 700)
        assert sorted(done.state.flight) == [1, 2]
        again = await store.finish(job_id, 0, LEASE, "done", 700)
        assert not again.ok
        assert again.state == done.state
        failed = await store.finish(job_id, 1, LEASE + 1, "failed", 0)
        assert failed.state is not None
        assert (failed.state.done, failed.state.failed, failed.state.bytes) == (1, 1, 700)

    asyncio.run(story())


def test_finish_is_fenced_by_the_lease(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        await store.claim(job_id, 0, LEASE, NOW)
        await store.claim(job_id, 0, LEASE + 200_000, LEASE)
        zombie = await store.finish(job_id, 0, LEASE, "done", 1)
        assert not zombie.ok
        assert zombie.state is not None
        assert zombie.state.flight[0].until == LEASE + 200_000

    asyncio.run(story())


@pytest.mark.parametrize(("status", "error", "counts"), [("cancelled", None, True), ("failed", "deadline", False)])
def test_a_late_outcome_counts_after_a_cancel_and_not_after_the_deadline(
    store: Store, status: Any, error: str | None, counts: bool
) -> None:
    async def story() -> None:
        made = submission()
        job_id = made.meta.job_id
        await store.commit(made, NOW)
        claimed = await store.claim(job_id, 0, LEASE, NOW)
        assert claimed.state is not None
        settled = await store.settle(made.meta, claimed.state, status, error, NOW + 1, 99)
        assert settled.ok
        late = await store.finish(job_id, 0, LEASE, "done", 8)
        assert late.ok is counts
        assert late.state is not None
        assert late.state.status == status
        assert late.state.done == (1 if counts else 0)

    asyncio.run(story())


def test_hand_back_does_not_charge_the_claim_and_keeps_when_it_became_busy(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        await store.claim(job_id, 0, LEASE, NOW)
        busy = await store.hand_back(job_id, 0, LEASE, NOW - 4000, NOW + 7)
        assert busy.ok
        assert busy.state is not None
        assert busy.state.flight[0] == Flight(NOW - 4000, 0, NOW + 7)
        claimed = await store.claim(job_id, 0, LEASE + 1, NOW)
        assert claimed.state is not None
        assert claimed.state.flight[0] == Flight(LEASE + 1, 1, NOW + 7)
        again = await store.hand_back(job_id, 0, LEASE + 1, NOW, NOW + 9000)
        assert again.state is not None
        assert again.state.flight[0] == Flight(NOW, 0, NOW + 7)
        assert not (await store.hand_back(job_id, 0, LEASE + 1, NOW, None)).ok

    asyncio.run(story())


def test_a_busy_target_is_not_claimed_before_its_time_and_its_crashes_are_forgotten(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        await store.claim(job_id, 0, NOW + 5, NOW)
        await store.claim(job_id, 0, LEASE, NOW + 5)
        busy = await store.hand_back(job_id, 0, LEASE, NOW + 60_000, NOW + 7)
        assert busy.state is not None
        assert busy.state.flight[0] == Flight(NOW + 60_000, 0, NOW + 7)
        assert busy.state.running(NOW + 8) == 0
        early = await store.claim(job_id, 0, LEASE + 90_000, NOW + 59_999)
        assert (early.ok, early.state) == (False, busy.state)
        assert (await store.claim(job_id, 0, LEASE + 90_000, NOW + 60_000)).ok

    asyncio.run(story())


def test_a_claim_that_is_handed_back_leaves_the_others_charged(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        await store.claim(job_id, 0, NOW + 5, NOW)
        await store.claim(job_id, 0, LEASE, NOW + 5)
        back = await store.hand_back(job_id, 0, LEASE, NOW - 4000, None)
        assert back.state is not None
        assert back.state.flight[0] == Flight(NOW - 4000, 1)

    asyncio.run(story())


def test_an_outcome_is_kept_whole_and_never_overwritten_by_an_older_lease(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        first = _outcome(content="日本 text".encode())
        assert await store.put_outcome(job_id, first, 99)
        assert (await store.get_segment_outcomes(job_id, 0, 0, 99))[0] == first
        newer = _outcome(lease=LEASE + 5, blob="jobs/x/0/1")
        assert await store.put_outcome(job_id, newer, None)
        assert not await store.put_outcome(job_id, first, 99)
        assert await store.put_outcome(job_id, newer, None)  # a repeated call after a lost answer
        assert (await store.get_segment_outcomes(job_id, 0, 0, 99)) == {0: newer}

    asyncio.run(story())


def test_outcomes_can_be_read_without_their_contents(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        inline, apart, failed = (
            _outcome(0, content=b"text"), _outcome(1, blob="jobs/x/1/1"), replace(_outcome(2), status="failed"),
        )  # fmt: skip
        for outcome in (inline, apart, failed):
            await store.put_outcome(job_id, outcome, 99)
        found = await store.get_segment_outcomes(job_id, 0, 0, 99, content=False)
        assert found == {0: replace(inline, content=None), 1: apart, 2: replace(failed, content=None)}
        assert (await store.get_segment_outcomes(job_id, 0, 0, 99))[0] == inline

    asyncio.run(story())


def test_outcomes_are_read_by_segment_and_range(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        for index in (0, 5, 99, 100, 205):
            await store.put_outcome(job_id, _outcome(index), 99)
        assert sorted(await store.get_segment_outcomes(job_id, 0, 0, 99)) == [0, 5, 99]
        assert sorted(await store.get_segment_outcomes(job_id, 0, 5, 98)) == [5]
        assert sorted(await store.get_segment_outcomes(job_id, 2, 200, 299)) == [205]

    asyncio.run(story())


def test_release_moves_the_cursor_once(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store, total=9, released=2)
        moved = await store.release(job_id, 2, 4, NOW - 5000)
        assert moved.ok
        assert moved.state is not None
        assert moved.state.released == 6
        assert moved.state.flight == {index: Flight(NOW - 5000) for index in range(6)}
        again = await store.release(job_id, 2, 4, NOW)
        assert not again.ok
        assert again.state == moved.state

    asyncio.run(story())


def test_touch_changes_all_or_nothing(store: Store) -> None:
    async def story() -> None:
        job_id = await _job(store)
        state = await store.get_state(job_id)
        assert state is not None
        claimed = await store.claim(job_id, 2, LEASE, NOW)
        refused = await store.touch(job_id, dict(state.flight), NOW)
        assert not refused.ok
        assert refused.state == claimed.state
        some = {index: state.flight[index] for index in (0, 1)}
        touched = await store.touch(job_id, some, NOW)
        assert touched.ok
        assert touched.state is not None
        assert [touched.state.flight[i].until for i in range(3)] == [NOW, NOW, LEASE]
        assert dataclasses.replace(touched.state.flight[2]) == Flight(LEASE, 1)

    asyncio.run(story())
