"""Contract of the store: the course of a job, its end, and what follows: its results file, its removal."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from sift import ids
from sift.assembly import Assembly
from sift.errors import DataUnreadable
from sift.jobs import Flight
from sift.store.dynamo import DynamoStore
from sift.store.ports import Committed, Outcome, Store
from tests.contract.conftest import HOUR, NOW, new_table, submission


@pytest.mark.parametrize("before", ["queued", "running", "pausing", "paused", "cancelling"])
def test_any_live_job_begins_to_cancel(store: Store, before: str) -> None:
    """From then on nothing is claimed, released or paused; what was claimed may finish or be handed back."""

    async def story() -> None:
        made = submission(total=5, released=3)
        job_id = made.meta.job_id
        await store.commit(made, NOW)
        if before in {"running", "pausing", "cancelling"}:
            await store.claim(job_id, 0, NOW + 100_000, NOW)
            await store.claim(job_id, 1, NOW + 100_001, NOW)
        if before in {"pausing", "paused"}:
            await store.pause(job_id, "pausing" if before == "pausing" else "paused", NOW)
        if before == "cancelling":
            await store.cancel(job_id)
        changed = await store.cancel(job_id)
        assert changed.ok
        assert changed.state is not None
        assert changed.state.status == "cancelling"
        assert changed.state == await store.get_state(job_id)
        assert not (await store.claim(job_id, 2, NOW + 100_002, NOW)).ok
        assert not (await store.release(job_id, 3, 1, NOW)).ok
        assert not (await store.pause(job_id, "pausing", NOW)).ok
        assert not (await store.end_pause(job_id, NOW)).ok
        assert not (await store.resume(job_id)).ok
        if before in {"running", "cancelling"}:
            assert (await store.finish(job_id, 0, NOW + 100_000, "done", 7)).ok
            assert (await store.hand_back(job_id, 1, NOW + 100_001, NOW - 5_000, None)).ok
        seen = await store.get_state(job_id)
        assert seen is not None
        assert (await store.settle(made.meta, seen, "cancelled", None, NOW, NOW // 1000 + 60)).ok
        end = await store.get_state(job_id)
        assert end is not None
        assert end.status == "cancelled"
        refused = await store.cancel(job_id)
        assert (refused.ok, refused.state) == (False, end)
        assert not await store.live_jobs(0)

    asyncio.run(story())


def test_there_is_nothing_to_cancel(store: Store) -> None:
    async def story() -> None:
        changed = await store.cancel(submission().meta.job_id)
        assert (changed.ok, changed.state) == (False, None)

    asyncio.run(story())


def test_settle_frees_both_slots_and_queues_the_announcement(store: Store) -> None:
    async def story() -> None:
        made = submission(total=1, caller_cap=1)
        job_id = made.meta.job_id
        await store.commit(made, NOW)
        await store.claim(job_id, 0, NOW + 9, NOW)
        finished = await store.finish(job_id, 0, NOW + 9, "done", 4)
        assert finished.state is not None
        assert (await store.settle(made.meta, finished.state, "done", None, NOW + 50, 77)).ok
        state = await store.get_state(job_id)
        assert state is not None
        assert (state.status, state.ended_at, state.expires_at, state.error) == ("done", NOW + 50, 77, None)
        assert await store.live_jobs(0) == []
        assert await store.outbox(0) == [job_id]
        assert await store.commit(submission(caller_cap=1, shard_cap=1), NOW) == Committed()
        await store.leave_outbox(0, job_id)
        await store.leave_outbox(0, job_id)
        assert await store.outbox(0) == []

    asyncio.run(story())


def test_settle_holds_only_for_what_its_status_was_computed_from(store: Store) -> None:
    async def story() -> None:
        made = submission(total=2)
        job_id, meta = made.meta.job_id, made.meta
        await store.commit(made, NOW)
        claimed = await store.claim(job_id, 0, NOW + 9, NOW)
        assert claimed.state is not None
        early = await store.settle(meta, claimed.state, "done", None, NOW, 77)
        assert (early.ok, early.state) == (False, claimed.state)
        await store.finish(job_id, 0, NOW + 9, "done", 4)
        overtaken = await store.settle(meta, claimed.state, "failed", "deadline", NOW, 77)
        assert not overtaken.ok
        assert overtaken.state is not None
        assert overtaken.state.done == 1
        assert (await store.settle(meta, overtaken.state, "partial", "deadline", NOW, None)).ok
        again = await store.settle(meta, overtaken.state, "cancelled", None, NOW, 77)
        assert not again.ok
        assert again.state is not None
        assert (again.state.status, again.state.error, again.state.expires_at) == ("partial", "deadline", None)
        assert again.state.flight == {1: Flight(NOW - 5000)}

    asyncio.run(story())


def test_pause_and_resume(store: Store) -> None:
    async def story() -> None:
        job_id = submission().meta.job_id
        await store.commit(submission(job_id), NOW)
        assert not (await store.pause(job_id, "pausing", NOW)).ok
        assert (await store.pause(job_id, "paused", NOW)).ok
        assert not (await store.claim(job_id, 0, NOW + 9, NOW)).ok
        assert not (await store.release(job_id, 3, 1, NOW)).ok
        resumed = await store.resume(job_id)
        assert resumed.state is not None
        assert (resumed.state.status, resumed.state.pausing_at) == ("queued", None)
        await store.claim(job_id, 0, NOW + 9, NOW)
        assert (await store.pause(job_id, "pausing", NOW + 1)).ok
        assert not (await store.end_pause(job_id, NOW)).ok
        paused = await store.end_pause(job_id, NOW + 1)
        assert paused.state is not None
        assert paused.state.status == "paused"
        assert not (await store.resume(ids.new_job_id(NOW))).ok

    asyncio.run(story())


def test_an_unknown_version_is_refused(deployed: Any) -> None:
    async def story() -> None:
        table = new_table(deployed)
        client = deployed.client("dynamodb")
        later = DynamoStore(client, table)
        made = submission()
        await later.commit(made, NOW)
        client.update_item(
            TableName=table,
            Key={"pk": {"S": f"JOB#{made.meta.job_id}"}, "sk": {"S": "STATE"}},
            UpdateExpression="SET v = :v",
            ExpressionAttributeValues={":v": {"N": "2"}},
        )
        with pytest.raises(DataUnreadable):
            await later.get_state(made.meta.job_id)
        with pytest.raises(DataUnreadable):
            await later.claim(made.meta.job_id, 0, NOW + 9, NOW)
        with pytest.raises(DataUnreadable):
            await later.settle(made.meta, made.state, "cancelled", None, NOW, None)

    asyncio.run(story())


def test_a_deleted_job_is_hidden_at_once_and_removed_in_steps(store: Store) -> None:
    async def story() -> None:
        made = submission(total=2)
        meta, job_id = made.meta, made.meta.job_id
        await store.commit(made, NOW)
        live = await store.hide(meta, NOW)
        assert (live.ok, live.state) == (False, made.state)
        await store.settle(meta, made.state, "cancelled", None, NOW, (NOW + HOUR) // 1000)
        await store.put_outcome(job_id, Outcome(0, 5, "done", 1, {}, blob="blob-0"), None)
        await store.put_outcome(job_id, Outcome(1, 5, "done", 1, {}, content=b"x"), None)
        assert (await store.hide(meta, NOW)).ok
        assert (await store.hide(meta, NOW)).ok  # repeated after a lost answer
        state = await store.get_state(job_id)
        assert state is not None
        assert state.expired(NOW)
        assert await store.list_jobs("acme/ann", NOW, None, 9) == ([], None)
        assert await store.list_all_jobs(None, NOW, None, 9) == ([], None)
        assert await store.count_jobs("acme/ann", NOW, 9) == 0
        assert await store.removals(0) == [job_id]
        for _ in range(2):
            await store.remove_segment(job_id, 0)
            assert await store.get_segment_outcomes(job_id, 0, 0, 99) == {}
            assert await store.get_segment(job_id, 0) is None
            assert await store.get_meta(job_id) in (meta, None)
            await store.remove_job(job_id)
            assert await store.get_job(job_id) is None
            await store.leave_removals(0, job_id)
            assert await store.removals(0) == []

    asyncio.run(story())


def test_how_far_a_results_file_has_come_is_changed_by_one_at_a_time(store: Store) -> None:
    async def story() -> None:
        job_id = ids.new_job_id(NOW)
        assert await store.get_assembly(job_id) is None
        begun = Assembly(job_id, "a1", {3: Flight(NOW, 2, NOW - 5), 7: Flight(NOW)}, NOW, NOW // 1000 + 60)
        assert await store.put_assembly(begun)
        assert not await store.put_assembly(dataclasses.replace(begun, attempt="a2")), "it is begun once"
        assert await store.get_assembly(job_id) == begun
        grown = dataclasses.replace(begun, next_index=9, parts=('"x"',), upload="u", size=5, revision=1)
        assert await store.put_assembly(grown)
        assert not await store.put_assembly(dataclasses.replace(grown, upload="other")), "it has moved"
        assert not await store.put_assembly(dataclasses.replace(grown, revision=3)), "one revision after the other"
        assert await store.get_assembly(job_id) == grown
        done = dataclasses.replace(grown, done=True, restarts=1, revision=2)
        races = [store.put_assembly(dataclasses.replace(done, size=n)) for n in range(5)]
        assert (await asyncio.gather(*races)).count(True) == 1
        await store.remove_assembly(job_id)
        assert await store.get_assembly(job_id) is None
        assert not await store.put_assembly(dataclasses.replace(done, revision=3)), "what is gone stays so"
        assert await store.put_assembly(begun)
        await store.remove_job(job_id)
        assert await store.get_assembly(job_id) is None

    asyncio.run(story())
