"""Inference jobs: what the gateway is asked, what is kept of its answers, and when a request in flight is given up."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
from collections import Counter

import pytest

from sift.blob_keys import content_key, input_key
from sift.errors import TargetBusy, TargetCut
from sift.jobs import MAX_CLAIMS
from sift.model_requests import INLINE_BODY_BYTES
from sift.queue.ports import Received
from sift.services.submit import Submitted
from sift.store.ports import Outcome
from tests.unit.services.fake_gateway import STALLED, response
from tests.unit.services.faults import Fault, Killed, Life, at
from tests.unit.services.world import ANN, NOW, REQUEST_SECONDS, World

LARGE = "x" * (INLINE_BODY_BYTES + 1)
NOISE = random.Random(1).randbytes(400_000)


def outcome(world: World, job: Submitted, index: int = 0) -> Outcome:
    return world.store.outcomes[job.meta.job_id, index]


def error(world: World, job: Submitted, index: int = 0) -> dict[str, object]:
    found: dict[str, object] = outcome(world, job, index).document["error"]
    return found


# good answers


def test_a_request_and_its_answer(world: World) -> None:
    async def story() -> None:
        who = dataclasses.replace(ANN, subject="ann@acme.example", application="notebook")
        job = await world.ask("one", model="small", who=who)
        world.clock.now += 1_000
        assert await world.answer() == []
        world.check(job.meta.job_id, ["done"])
        assert (job.meta.kind, world.state(job).status) == ("inference", "done")
        (asked,) = world.gateway.asked
        assert (asked.path, asked.request_id) == ("/v1/completions", f"{job.meta.job_id}/0")
        assert asked.body == b'{"prompt":"one","model":"small"}'
        assert asked.identity == {
            "tenant": "acme", "actor": "ann", "subject": "ann@acme.example", "application": "notebook",
        }  # fmt: skip
        assert world.gateway.seconds == [REQUEST_SECONDS]
        kept = outcome(world, job)
        assert (kept.content, kept.blob, kept.size) == (b'{"ok":true}', None, 11)
        assert (kept.document["path"], kept.document["model"], kept.document["error"]) == (
            "/v1/completions", "small", None,
        )  # fmt: skip
        assert "url" not in kept.document
        meta = kept.document["meta"]
        assert (meta["status"], meta["content_type"], meta["attempts"]) == (200, "application/json", 1)
        assert (meta["gateway_request_id"], meta["usage"]) == ("gw-1", {"total_tokens": 3})
        assert meta["started_at"] < meta["finished_at"]
        assert not world.requests.waiting
        assert not world.queue.waiting
        assert world.bus.published[0][1]["kind"] == "inference"

    asyncio.run(story())


def test_a_large_body_waits_in_the_bucket_before_the_job_is_there(world: World) -> None:
    async def story() -> None:
        world.restart(at("store.commit", Fault.DEATH_BEFORE))
        with pytest.raises(Killed):
            await world.ask("small", LARGE)
        assert [key.split("/", 2)[2] for key in world.blobs.blobs] == ["inputs/1"]
        world.restart()
        job = await world.ask("small", LARGE)
        key = input_key(job.meta.job_id, 1)
        assert json.loads(world.blobs.blobs[key][0]) == {"prompt": LARGE}
        assert all(len(message.body) < 1_000 for message in world.requests.waiting.values())
        await world.answer()
        assert sorted(world.gateway.prompts) == sorted(["small", LARGE])
        world.check(job.meta.job_id, ["done", "done"])

    asyncio.run(story())


def test_a_large_answer_is_in_the_bucket_under_its_lease(world: World) -> None:
    async def story() -> None:
        world.gateway.answers["one"] = [response(NOISE, media_type="audio/mpeg")]
        job = await world.ask("one")
        await world.answer()
        kept = outcome(world, job)
        assert kept.blob == content_key(job.meta.job_id, 0, kept.lease)
        assert world.blobs.blobs[kept.blob] == (NOISE, "audio/mpeg")
        assert world.state(job).bytes == len(NOISE)

    asyncio.run(story())


def test_a_redirect_is_done_and_an_error_is_failed_with_its_body(world: World) -> None:
    async def story() -> None:
        world.gateway.answers |= {"moved": [response(b"", 307)], "wrong": [response(b'{"error":"no"}', 400)]}
        job = await world.ask("moved", "wrong")
        await world.answer()
        world.check(job.meta.job_id, ["done", "failed"])
        found = error(world, job, 1)
        assert (found["code"], found["status"]) == ("http_error", 400)
        assert outcome(world, job, 1).content == b'{"error":"no"}'
        assert outcome(world, job, 1).document["meta"]["status"] == 400

    asyncio.run(story())


def test_what_would_go_over_the_budget_is_not_kept(world: World) -> None:
    async def story() -> None:
        world.gateway.answers["one"] = [response(b"x" * 1_000_001)]
        job = await world.ask("one")
        await world.answer()
        assert error(world, job)["code"] == "over_budget"
        assert not world.blobs.blobs

    asyncio.run(story())


def test_nothing_is_asked_for_when_the_budget_is_used_up(world: World) -> None:
    """Whatever the model said, it could not be kept."""

    async def story() -> None:
        world.gateway.answers["one"] = [response(b"x" * 1_000_000)]
        job = await world.ask("one", "two", window=1)
        await world.answer()
        await world.answer()
        world.check(job.meta.job_id, ["done", "failed"])
        assert error(world, job, 1)["code"] == "over_budget"
        assert world.gateway.prompts == ["one"]

    asyncio.run(story())


def test_a_request_costs_four_writes_at_most(world: World) -> None:
    """Claim, outcome and finish; releases and the end are shared by many."""

    async def story() -> None:
        job = await world.ask(*(str(number) for number in range(64)))
        life = Life()
        asker = world.make_asker(life)
        while world.state(job).status != "done":
            await world.answer(worker=asker)
        world.check(job.meta.job_id, ["done"] * 64)
        writes = Counter(name for name in life.calls if name.startswith("store.") and ".get_" not in name)
        assert writes["store.claim"] == writes["store.put_outcome"] == writes["store.finish"] == 64
        assert sum(writes.values()) <= 4 * 64
        assert life.calls.count("store.get_meta") == 64
        assert not [name for name in life.calls if name.startswith("blobs.")]

    asyncio.run(story())


# bad answers


def test_a_busy_gateway_is_asked_again_and_given_up_after_ten_minutes(world: World) -> None:
    async def story() -> None:
        world.gateway.answers["one"] = [TargetBusy("It answered 429.", status=429, retry_after=7.0), response()]
        world.gateway.answers["two"] = [TargetBusy("It refused the connection.")]
        job = await world.ask("one", "two")
        assert len(await world.answer()) == 2
        entry = world.state(job).flight[0]
        assert entry.claims == 0
        assert entry.until >= world.clock.now + 6_000
        await world.run_on()
        world.check(job.meta.job_id, ["done", "failed"])
        assert error(world, job, 1)["code"] == "busy"
        assert world.clock.now - NOW < 12 * 60_000

    asyncio.run(story())


def test_an_answer_that_is_cut_off_is_tried_again_and_counted(world: World) -> None:
    async def story() -> None:
        world.gateway.answers["one"] = [TargetCut("It broke off."), response()]
        world.gateway.answers["two"] = [TargetCut("It broke off.")]
        job = await world.ask("one", "two")
        await world.answer()
        assert [entry.claims for entry in world.state(job).flight.values()] == [1, 1]
        await world.run_on()
        world.check(job.meta.job_id, ["done", "failed"])
        assert outcome(world, job, 0).document["meta"]["attempts"] == 2
        assert error(world, job, 1)["code"] == "connect_failed"
        assert world.gateway.prompts.count("two") == MAX_CLAIMS

    asyncio.run(story())


def test_requests_that_were_cut_off_are_asked_again_side_by_side(world: World) -> None:
    """A gateway that restarts cuts off all that it has: one after the other, they would not fit in a worker's time."""

    async def story() -> None:
        prompts = [str(number) for number in range(10)]
        for prompt in prompts:
            world.gateway.answers[prompt] = [TargetCut("It broke off."), response()]
        job = await world.ask(*prompts)
        await world.answer()
        world.clock.now += 60_000

        async def until_all_are_asked() -> None:
            for _ in range(1_000):
                if len(world.gateway.asked) == 2 * len(prompts):
                    return
                await asyncio.sleep(0)
            raise AssertionError("they wait for each other")

        world.gateway.during = dict.fromkeys(prompts, until_all_are_asked)
        assert await world.answer() == []
        world.check(job.meta.job_id, ["done"] * 10)

    asyncio.run(story())


def test_a_request_that_takes_too_long(world: World) -> None:
    async def story() -> None:
        world.gateway.answers["one"] = [STALLED]
        job = await world.ask("one")
        await world.answer()
        assert error(world, job)["code"] == "timeout"
        assert outcome(world, job).document["meta"]["started_at"]

    asyncio.run(story())


def test_a_request_that_had_less_than_its_time_is_tried_again(world: World) -> None:
    """It ran after the others of its batch, for it had been cut off; how long it takes alone, that does not say."""

    async def story() -> None:
        world.gateway.answers["one"] = [TargetCut("It broke off."), STALLED, response()]
        job = await world.ask("one", "two")
        await world.answer(1)
        world.clock.now += 60_000
        began = world.clock.now
        kept = await world.asker.run_batch(
            [_received(world, receipt) for receipt in world.requests.waiting],
            lambda: 90.0 - (0 if world.clock.now == began else 40),
        )
        assert len(kept) == 1
        assert world.state(job).flight[0].claims == 1
        await world.run_on()
        world.check(job.meta.job_id, ["done", "done"])

    asyncio.run(story())


def _received(world: World, receipt: str) -> Received:
    return Received(receipt, receipt, world.requests.waiting[receipt].body)
