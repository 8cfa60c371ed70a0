"""Contract of the store: lists of jobs, and many read at once."""

from __future__ import annotations

import asyncio
import dataclasses

from sift import ids
from sift.store.ports import Store
from tests.contract.conftest import HOUR, NOW, submission


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
