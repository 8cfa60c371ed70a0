"""Contract of the store: submit, caps, the course and the end of a job, keys."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from sift import ids
from sift.assembly import Assembly
from sift.identity import Identity, KeyRecord
from sift.jobs import Flight
from sift.specs import RequestSpec, Spec
from sift.store.ports import CapReached, Committed, Duplicate, Outcome, Segment, Store
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


def test_shards_that_hold_anything_are_told_in_one_look(store: Store) -> None:
    async def story() -> None:
        assert await store.used_shards(20) == []
        live, ended, removed = (submission(caller_cap=9, shard=shard) for shard in (19, 3, 7))
        for made in (live, ended, removed):
            await store.commit(made, NOW)
        assert await store.used_shards(20) == [3, 7, 19]
        assert await store.used_shards(19) == [3, 7]
        for made in (ended, removed):
            await store.settle(made.meta, made.state, "cancelled", None, NOW, None)
            assert made.meta.shard in await store.used_shards(20)
        await store.hide(removed.meta, NOW)
        for made in (ended, removed):
            await store.leave_outbox(made.meta.shard, made.meta.job_id)
        assert await store.used_shards(20) == [7, 19]
        await store.leave_removals(7, removed.meta.job_id)
        assert await store.used_shards(20) == [19]

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


def test_jobs_are_listed_newest_first_without_the_expired(store: Store) -> None:
    async def story() -> None:
        made = [ids.new_job_id(NOW + n) for n in range(5)]
        for n, job_id in enumerate(made):
            await store.commit(submission(job_id, expires_in=HOUR if n == 1 else HOUR * 9), NOW)
        first, more = await store.list_jobs("acme/ann", NOW, None, 2)
        assert list(first) == [made[4], made[3]]
        second, _ = await store.list_jobs("acme/ann", NOW + HOUR * 2, more, 9)
        assert list(second) == [made[2], made[0]]
        assert await store.count_jobs("acme/ann", NOW + HOUR * 2, 9) == 4
        assert await store.count_jobs("acme/ann", NOW, 3) >= 3
        assert await store.list_jobs("acme/bob", NOW, None, 2) == ([], None)

    asyncio.run(story())


def test_every_job_is_listed_for_admins(store: Store) -> None:
    async def story() -> None:
        made = [ids.new_job_id(NOW + n) for n in range(6)]
        callers = ["acme/ann", "globex/bob", "acme/cid", "acme/ann", "globex/bob", "acme/ann"]
        for n, (job_id, caller) in enumerate(zip(made, callers, strict=True)):
            await store.commit(submission(job_id, caller=caller, expires_in=HOUR if n == 5 else HOUR * 9), NOW)
        first, more = await store.list_all_jobs(None, NOW, None, 4)
        assert list(first) == made[:1:-1]
        assert await store.list_all_jobs(None, NOW, more, 9) == (made[1::-1], None)
        assert await store.list_all_jobs("acme", NOW, None, 9) == ([made[5], made[3], made[2], made[0]], None)
        short, more = await store.list_all_jobs("globex", NOW, None, 2)
        assert list(short) == [made[4]], "what is not of the tenant counts as looked at"
        assert await store.list_all_jobs("globex", NOW, more, 9) == ([made[1]], None)
        assert await store.list_all_jobs("other", NOW, None, 9) == ([], None)
        assert await store.list_all_jobs("acme/ann", NOW, None, 9) == ([], None)
        later = NOW + HOUR * 2
        assert await store.list_all_jobs(None, later, None, 9) == (made[4::-1], None)

    asyncio.run(story())


def test_slots_of_a_job_that_is_gone_can_be_freed(store: Store) -> None:
    async def story() -> None:
        made = submission(caller_cap=1, shard_cap=1)
        await store.commit(made, NOW)
        assert await store.caller_live("acme/ann") == [made.meta.job_id]
        await store.forget_live(made.meta.job_id, caller="acme/ann", shard=0)
        assert await store.commit(submission(caller_cap=1, shard_cap=1), NOW) == Committed()

    asyncio.run(story())


def key_record(key_id: str, **values: Any) -> KeyRecord:
    identity = Identity("acme", "ann", key_id, ("fetch", "admin:acme"), {"targets_per_job": 9}, **values)
    return KeyRecord(key_id, "00ff", identity, expires_at=1234, created_at=1200)


def test_keys_are_kept_with_their_identity(store: Store) -> None:
    async def story() -> None:
        record = key_record(
            "abc", subject="Ann", application="crawler", allowed_models=("a", "b"), denied_models=("c",),
            caller_class="batch",
        )  # fmt: skip
        await store.put_key(record)
        assert await store.get_key("abc") == record
        forever = dataclasses.replace(record, expires_at=None, identity=key_record("abc").identity)
        await store.put_key(forever)
        assert await store.get_key("abc") == forever
        assert await store.get_key("abd") is None

    asyncio.run(story())


def test_keys_are_listed_and_revoked(store: Store) -> None:
    async def story() -> None:
        assert await store.list_keys() == []
        records = [key_record(f"{number:03d}") for number in range(120)]
        for record in reversed(records):
            await store.put_key(record)
        await store.put_key(records[7])
        assert await store.list_keys() == records
        revoked = dataclasses.replace(records[7], revoked_at=1300)
        assert await store.revoke_key("007", 1300) == revoked
        assert await store.revoke_key("007", 1400) == revoked
        assert await store.get_key("007") == (await store.list_keys())[7] == revoked
        assert await store.revoke_key("abc", 1300) is None
        assert await store.get_key("abc") is None, "revoking makes no key"

    asyncio.run(story())


def test_a_key_of_an_earlier_release_is_read(deployed: Any) -> None:
    from sift.store.dynamo import DynamoStore
    from tests.contract.conftest import new_table

    table, client = new_table(deployed), deployed.client("dynamodb")
    client.put_item(
        TableName=table,
        Item={
            "pk": {"S": "KEY#abc"}, "sk": {"S": "KEY"}, "v": {"N": "1"}, "secret_sha256": {"S": "00ff"},
            "tenant": {"S": "acme"}, "actor": {"S": "ann"}, "scopes": {"L": [{"S": "fetch"}]}, "limits": {"M": {}},
        },
    )  # fmt: skip
    found = asyncio.run(DynamoStore(client, table).get_key("abc"))
    assert found == KeyRecord("abc", "00ff", Identity("acme", "ann", "abc"))


def test_an_unknown_version_is_refused(deployed: Any) -> None:
    import pytest

    from sift.errors import DataUnreadable
    from sift.store.dynamo import DynamoStore
    from tests.contract.conftest import new_table

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


def test_the_list_forgets_a_job_when_the_job_does(store: Store) -> None:
    async def story() -> None:
        made = submission()
        await store.commit(made, NOW)
        await store.settle(made.meta, made.state, "cancelled", None, NOW, NOW // 1000 + 60)
        assert await store.count_jobs("acme/ann", NOW, 9) == 1
        assert await store.count_jobs("acme/ann", NOW + 61_000, 9) == 0
        assert await store.list_jobs("acme/ann", NOW + 61_000, None, 9) == ([], None)

    asyncio.run(story())


def test_many_jobs_are_read_at_once_in_the_order_asked(store: Store) -> None:
    async def story() -> None:
        made = [submission() for _ in range(60)]  # 120 items: more than one request of 100 keys
        for one in made:
            await store.commit(dataclasses.replace(one, caller_cap=99, shard_cap=99), NOW)
        newest_first = [one.meta.job_id for one in reversed(made)]
        asked = [newest_first[0], ids.new_job_id(NOW), *newest_first[1:]]
        found = await store.get_jobs(asked)
        assert [meta.job_id for meta, _ in found] == newest_first
        assert found[0] == (made[-1].meta, made[-1].state)
        assert await store.get_meta(asked[0]) == made[-1].meta
        assert await store.get_jobs([]) == []

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
