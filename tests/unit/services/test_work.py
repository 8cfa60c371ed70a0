"""The worker: outcomes, what is kept where, its time, and messages that are none."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from sift.blob_keys import content_key
from sift.errors import TargetFailed
from sift.identity import Limits
from sift.services.fetching import TARGET_SECONDS
from sift.services.outcomes import INLINE_WHOLE_BYTES
from sift.services.submit import Submitted
from sift.specs import Spec
from sift.store.ports import Changed, Outcome
from sift.targets import Content
from tests.unit.services.faults import Fault, at
from tests.unit.services.world import LEASE_SECONDS, NOW, VISIBILITY_SECONDS, World, urls


def outcome(world: World, job: Submitted, index: int = 0) -> Outcome:
    return world.store.outcomes[job.meta.job_id, index]


def test_a_batch_of_targets(world: World) -> None:
    async def story() -> None:
        targets = [Spec("https://example.com/a", {"mode": "raw"}, "mine"), Spec("https://example.com/b")]
        world.site.answers["https://example.com/b"] = [
            TargetFailed("http_error", "It answered 404.", "Check the URL.", status=404, meta={"final_url": "x"})
        ]
        job = await world.submit(targets=targets)
        world.clock.now += 1_000
        assert await world.deliver() == []
        world.check(job.meta.job_id, ["done", "failed"])
        assert world.state(job).status == "partial"
        assert world.state(job).started_at == NOW + 1_000
        done, failed = outcome(world, job, 0), outcome(world, job, 1)
        assert (done.content, done.blob, done.size) == (b"https://example.com/a", None, 21)
        assert done.document["url"] == "https://example.com/a"
        assert (done.document["id"], done.document["attempts"], done.document["error"]) == ("mine", 1, None)
        assert done.document["media_type"] == "text/markdown; charset=utf-8"
        assert done.document["meta"] == {"status": 200, "chars": 21, "attempts": 1}
        assert (failed.content, failed.blob, failed.size) == (None, None, 0)
        assert failed.document["error"] == {
            "code": "http_error", "detail": "It answered 404.", "hint": "Check the URL.", "status": 404,
        }  # fmt: skip
        assert failed.document["meta"] == {"final_url": "x", "attempts": 1}
        assert world.site.options == [{"mode": "raw"}, {}]
        assert set(world.site.deadlines) == {TARGET_SECONDS}
        assert not world.queue.waiting
        ((name, event),) = world.bus.published
        assert (name, event["status"], event["counts"]["failed"]) == ("Sift Job Ended", "partial", 1)

    asyncio.run(story())


def test_targets_of_a_batch_are_fetched_at_once(world: World) -> None:
    async def story() -> None:
        await world.submit(10)
        await world.deliver()
        assert max(len(together) for together in world.site.at_once) == 10

    asyncio.run(story())


def test_a_window_is_never_exceeded_and_topped_up_when_half_empty(world: World) -> None:
    async def story() -> None:
        job = await world.submit(25, window=6)
        while not world.quiet():
            assert len(world.queue.waiting) == len(world.state(job).flight) <= 6
            await world.deliver(3)
        world.check(job.meta.job_id, ["done"] * 25)
        assert len(world.site.fetched) == len(set(world.site.fetched)) == 25

    asyncio.run(story())


def test_large_content_goes_to_the_bucket(world: World) -> None:
    async def story() -> None:
        noise = random.Random(7).randbytes(40_000)
        text = b"compresses well " * 10_000
        world.site.answers = {
            urls(2)[0]: [Content(noise, "application/octet-stream")],
            urls(2)[1]: [Content(text, "text/plain; charset=utf-8")],
        }
        job = await world.submit(2)
        await world.deliver()
        large, small = outcome(world, job, 0), outcome(world, job, 1)
        key = content_key(job.meta.job_id, 0, large.lease)
        assert (large.content, large.blob, large.size) == (None, key, 40_000)
        assert world.blobs.blobs[key] == (noise, "application/octet-stream")
        assert (small.content, small.blob, small.size) == (text, None, 160_000)
        world.check(job.meta.job_id)

    asyncio.run(story())


def test_what_is_read_by_a_link_is_in_the_bucket_however_well_it_compresses() -> None:
    async def story() -> None:
        world = World(limits=Limits(targets_per_job=9, jobs_per_caller=9, retained_jobs=9, job_bytes=10**8))
        world.site.answers = {
            url: [Content(b"0" * (INLINE_WHOLE_BYTES + more), "text/plain")] for more, url in enumerate(urls(2))
        }
        job = await world.submit(2)
        await world.deliver()
        assert (outcome(world, job, 0).blob is None, outcome(world, job, 1).content) == (True, None)
        world.check(job.meta.job_id, ["done"] * 2)

    asyncio.run(story())


def test_what_would_go_over_the_budget_fails(world: World) -> None:
    async def story() -> None:
        world.site.answers = {url: [Content(b"x" * 400_000, "text/plain")] for url in urls(4)}
        job = await world.submit(4, window=1)
        await world.drain()
        world.check(job.meta.job_id, ["done", "done", "failed", "failed"])
        error = outcome(world, job, 2).document["error"]
        assert error["code"] == "over_budget"
        assert error["hint"]
        assert world.state(job).bytes == 800_000

    asyncio.run(story())


def test_a_fault_of_the_pipeline_costs_only_its_target(world: World) -> None:
    async def story() -> None:
        world.site.answers[urls(1)[0]] = [RuntimeError("a bug with /a/private/path")]
        job = await world.submit(3)
        assert await world.deliver() == []
        world.check(job.meta.job_id, ["failed", "done", "done"])
        error = outcome(world, job, 0).document["error"]
        assert error["code"] == "crashed"
        assert "private" not in json.dumps(error)

    asyncio.run(story())


# time


def test_without_time_for_a_target_the_message_goes_straight_back(world: World) -> None:
    async def story() -> None:
        job = await world.submit(2)
        assert len(await world.deliver(seconds=29.0)) == 2
        assert await world.queue.visible() == 2
        assert world.site.fetched == []
        assert world.state(job).flight[0].claims == 0

    asyncio.run(story())


def test_a_target_gets_no_more_time_than_its_function_has(world: World) -> None:
    async def story() -> None:
        await world.submit(1)
        await world.deliver(seconds=40.0)
        assert world.site.deadlines == [25.0]

    asyncio.run(story())


def test_the_deadline_ends_a_job_instead_of_its_next_target() -> None:
    async def story() -> None:
        world = World(deadline_seconds=60)
        job = await world.submit(3)
        world.clock.now += 60_000
        assert await world.deliver(1) == []
        assert world.site.fetched == []
        state = world.state(job)
        assert (state.status, state.error, state.ended_at) == ("failed", "deadline", NOW + 60_000)
        assert await world.deliver(10) == [], "the other messages are of no use any more"
        assert world.quiet()

    asyncio.run(story())


# messages


def test_what_is_no_message_is_buried_and_its_batch_mates_are_not(world: World) -> None:
    async def story() -> None:
        world.queue.add("not a target message")
        job = await world.submit(2)
        world.queue.add('{"v":1,"job":7}')
        assert await world.deliver() == []
        assert [body for body, _ in world.queue.buried] == ["not a target message", '{"v":1,"job":7}']
        assert all(reason for _, reason in world.queue.buried)
        assert not world.queue.waiting
        world.check(job.meta.job_id, ["done"] * 2)

    asyncio.run(story())


def test_what_nobody_foresaw_costs_only_its_message(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        job = await world.submit(3)
        claim = world.store.claim

        async def claim_but_one(job_id: str, index: int, *more: Any) -> Changed:
            if index == 1:
                raise RuntimeError("a bug of the table")
            return await claim(job_id, index, *more)

        monkeypatch.setattr(world.store, "claim", claim_but_one)
        (kept,) = await world.deliver()
        assert '"index":1' in world.queue.waiting[kept].body
        assert sorted(world.state(job).flight) == [1]
        monkeypatch.undo()
        await world.run_on(minutes=30)
        world.check(job.meta.job_id, ["done"] * 3)

    asyncio.run(story())


def test_a_message_that_can_not_be_buried_stays(world: World) -> None:
    async def story() -> None:
        world.restart(at("dead.bury", Fault.REQUEST_LOST))
        receipt = world.queue.add("not a target message")
        assert await world.deliver() == [receipt]
        assert world.queue.buried == []

    asyncio.run(story())


def test_a_message_of_a_later_version_waits_for_the_code_that_knows_it(world: World) -> None:
    async def story() -> None:
        receipt = world.queue.add('{"v":2,"job":"job_0","index":0,"url":"https://example.com/"}')
        assert await world.deliver() == [receipt]
        assert world.queue.waiting[receipt].visible_at == NOW + 60_000
        assert world.queue.buried == []

    asyncio.run(story())


@pytest.mark.parametrize("job_id", ["job_0", "job_01M8MZ2A0038NKRKAYDXR834MK", "../../etc", ""])
def test_a_message_of_a_job_that_is_gone_is_done_with(world: World, job_id: str) -> None:
    async def story() -> None:
        world.queue.add(json.dumps({"v": 1, "job": job_id, "index": 0, "url": "https://example.com/"}))
        assert await world.deliver() == []
        assert world.site.fetched == []

    asyncio.run(story())


def test_a_message_of_a_target_that_the_job_does_not_have_is_done_with(world: World) -> None:
    async def story() -> None:
        job = await world.submit(2)
        world.queue.add(json.dumps({"v": 1, "job": job.meta.job_id, "index": 99, "url": "https://example.com/"}))
        assert await world.deliver() == []
        assert len(world.site.fetched) == 2

    asyncio.run(story())


def test_leases_outlast_the_function_and_end_before_the_message_comes_back(world: World) -> None:
    async def story() -> None:
        job = await world.submit(1)
        seen: list[int] = []

        async def look() -> None:
            seen.append(world.state(job).flight[0].until - NOW)

        world.site.during[urls(1)[0]] = look
        await world.deliver()
        assert LEASE_SECONDS * 1_000 < seen[0] < VISIBILITY_SECONDS * 1_000

    asyncio.run(story())
