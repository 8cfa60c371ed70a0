"""Requests in flight while their job is paused, cancelled or over, or their worker dies."""

from __future__ import annotations

import asyncio
import dataclasses
import random

import pytest

from sift.errors import Conflict, DataUnreadable, Forbidden, NotFound, TargetBusy
from sift.jobs import MAX_CLAIMS, Flight, Status
from sift.model_requests import INLINE_BODY_BYTES
from sift.services.submit import Submitted
from sift.store.ports import Outcome
from tests.unit.services.fake_gateway import STALLED, response
from tests.unit.services.faults import Fault, Killed, at
from tests.unit.services.world import ANN, HOUR, LEASE_SECONDS, MINUTE, REQUEST_SECONDS, World

LARGE = "x" * (INLINE_BODY_BYTES + 1)


async def steer(world: World, job: Submitted, action: str) -> Status:
    _, state = await getattr(world.controller, action)(ANN, job.meta.job_id)
    status: Status = state.status
    return status


# pause and cancel


@pytest.mark.parametrize(
    ("action", "between", "after"), [("pause", "pausing", "paused"), ("cancel", "cancelling", "cancelled")]
)
def test_a_request_in_flight_is_aborted_within_two_seconds(world: World, action: str, between: str, after: str) -> None:
    async def story() -> None:
        world.gateway.answers["one"] = [STALLED, response()]
        seen: list[object] = []

        async def steer_it() -> None:
            seen.extend([await steer(world, job, action), world.clock.now])

        world.gateway.during["one"] = steer_it
        job = await world.ask("one", "two")
        assert await world.answer(1) == []
        assert seen[0] == between
        assert world.gateway.aborted == ["one"]
        assert world.clock.now - int(str(seen[1])) <= 2_000
        state = world.state(job)
        assert (state.status, state.done, state.failed) == (after, 0, 0)
        assert state.flight[0].claims == 0
        assert not world.store.outcomes
        assert not world.blobs.blobs

    asyncio.run(story())


def test_after_a_resume_the_request_runs_again_from_the_start(world: World) -> None:
    async def story() -> None:
        world.gateway.answers["one"] = [STALLED, response(b"again")]
        world.gateway.during["one"] = lambda: steer(world, job, "pause")
        job = await world.ask("one")
        await world.answer()
        assert not world.requests.waiting
        assert await steer(world, job, "resume") == "queued"
        await world.answer()
        world.check(job.meta.job_id, ["done"])
        assert world.store.outcomes[job.meta.job_id, 0].content == b"again"
        assert world.gateway.prompts == ["one", "one"]

    asyncio.run(story())


def test_what_has_finished_is_not_sent_again_by_a_resume(world: World) -> None:
    async def story() -> None:
        world.gateway.answers["two"] = [STALLED, response()]
        world.gateway.during["two"] = lambda: steer(world, job, "pause")
        job = await world.ask("one", "two", "three", window=2)
        await world.answer()
        await steer(world, job, "resume")
        await world.run_on()
        world.check(job.meta.job_id, ["done"] * 3)
        assert [world.gateway.prompts.count(prompt) for prompt in ("one", "two", "three")] == [1, 2, 1]

    asyncio.run(story())


def test_a_job_without_a_lease_is_cancelled_at_once(world: World) -> None:
    async def story() -> None:
        job = await world.ask("one", "two")
        assert await steer(world, job, "cancel") == "cancelled"
        assert await steer(world, job, "cancel") == "cancelled"
        await world.answer()
        assert not world.gateway.asked
        assert not world.requests.waiting
        paused = await world.ask("three")
        await steer(world, paused, "pause")
        assert await steer(world, paused, "cancel") == "cancelled"
        for job_ in (job, paused):
            assert [detail["job_id"] for _, detail in world.bus.published].count(job_.meta.job_id) == 1

    asyncio.run(story())


def test_cancelling_allows_a_cancel_and_nothing_else(world: World) -> None:
    async def story() -> None:
        job = await world.ask("one", "two")
        await world.store.claim(job.meta.job_id, 0, world.clock.now + 100_000, world.clock.now)
        assert await steer(world, job, "cancel") == "cancelling"
        assert await steer(world, job, "cancel") == "cancelling"
        for action in ("pause", "resume", "delete"):
            with pytest.raises(Conflict):
                await steer(world, job, action)
        await world.answer()
        assert not world.gateway.asked
        await world.sweep()
        assert world.state(job).status == "cancelling"
        world.clock.now += 200_000
        await world.sweep()
        assert world.state(job).status == "cancelled"
        assert not world.store.callers["acme/ann"]

    asyncio.run(story())


def test_an_answer_that_came_with_the_cancel_is_kept(world: World) -> None:
    """It is there whole: throwing it away would help nobody."""

    async def story() -> None:
        job = await world.ask("one", "two")
        world.gateway.during["one"] = lambda: steer(world, job, "cancel")
        await world.answer(1)
        state = world.state(job)
        assert (state.status, state.done) == ("cancelled", 1)
        slots = (await world.reader.page(ANN, job.meta.job_id, 0, 9, lambda slot: True)).slots
        assert [slot.status for slot in slots] == ["done", "cancelled"]
        assert [(slot.path, slot.url) for slot in slots] == [("/v1/completions", None)] * 2

    asyncio.run(story())


def test_a_request_is_aborted_when_the_deadline_has_ended_its_job() -> None:
    async def story() -> None:
        world = World(deadline_seconds=60)

        async def out_of_time() -> None:
            world.clock.now += MINUTE
            await world.sweep()

        world.gateway.answers["one"] = [STALLED]
        world.gateway.during["one"] = out_of_time
        job = await world.ask("one")
        await world.answer()
        assert (world.state(job).status, world.state(job).error) == ("failed", "deadline")
        assert world.gateway.aborted == ["one"]
        assert not world.requests.waiting

    asyncio.run(story())


def test_a_table_that_does_not_answer_aborts_nothing(world: World) -> None:
    async def story() -> None:
        world.restart(at("store.get_state", Fault.REQUEST_LOST, 3))
        world.gateway.during["one"] = lambda: world.clock.sleep(1)
        job = await world.ask("one")

        async def wait_long() -> None:
            for _ in range(20):
                await world.clock.sleep(1)

        world.gateway.during["one"] = wait_long
        await world.answer()
        world.check(job.meta.job_id, ["done"])
        assert world.life.calls.count("store.get_state") > 3
        assert not world.gateway.aborted

    asyncio.run(story())


def test_a_lease_that_was_lost_aborts_the_request(world: World) -> None:
    """A worker that stood still: another one has the request by now."""

    async def story() -> None:
        job = await world.ask("one")

        async def taken() -> None:
            lease = world.clock.now + 1_000_000
            state = world.state(job)
            world.store.states[job.meta.job_id] = dataclasses.replace(state, flight={0: Flight(lease, 2)})

        world.gateway.answers["one"] = [STALLED]
        world.gateway.during["one"] = taken
        assert len(await world.answer()) == 1
        assert world.gateway.aborted == ["one"]
        assert world.state(job).flight[0].claims == 2

    asyncio.run(story())


# crashes


@pytest.mark.parametrize(
    ("name", "asked"),
    [("store.claim", 1), ("store.get_meta", 1), ("store.put_outcome", 1), ("store.finish", 1)],
)
@pytest.mark.parametrize("fault", [Fault.DEATH_BEFORE, Fault.DEATH_AFTER])
def test_a_worker_that_dies(world: World, name: str, asked: int, fault: Fault) -> None:
    """The request runs again, but for one whose answer was stored by then."""

    async def story() -> None:
        job = await world.ask("one", "two")
        world.restart(at(name, fault))
        with pytest.raises(Killed):
            await world.answer(1)
        await world.bury_process()
        before = world.clock.now
        await world.run_on()
        world.check(job.meta.job_id, ["done", "done"])
        stored = name == "store.finish" or (name, fault) == ("store.put_outcome", Fault.DEATH_AFTER)
        again = name == "store.put_outcome" and not stored
        assert world.gateway.prompts.count("one") == asked + again
        # Its message is hidden for far longer than that.
        assert world.clock.now - before <= LEASE_SECONDS * 1000 + 5 * MINUTE

    asyncio.run(story())


def test_an_answer_of_the_last_claim_counts(world: World) -> None:
    """Every worker died with it; the last one after it had stored the answer."""

    async def story() -> None:
        job = await world.ask("one")
        for number in range(MAX_CLAIMS):
            last = number == MAX_CLAIMS - 1
            world.restart(at("store.finish" if last else "store.put_outcome", Fault.DEATH_BEFORE))
            with pytest.raises(Killed):
                await world.answer()
            await world.bury_process()
            world.clock.now += 2 * HOUR
        assert world.state(job).flight[0].claims == MAX_CLAIMS
        await world.run_on()
        world.check(job.meta.job_id, ["done"])
        assert len(world.gateway.asked) == MAX_CLAIMS

    asyncio.run(story())


def test_a_request_that_kills_every_worker_is_given_up(world: World) -> None:
    async def story() -> None:
        job = await world.ask("one")
        for _ in range(MAX_CLAIMS):
            world.restart(at("store.put_outcome", Fault.DEATH_BEFORE))
            with pytest.raises(Killed):
                await world.answer()
            await world.bury_process()
            world.clock.now += 2 * HOUR
        await world.run_on()
        world.check(job.meta.job_id, ["failed"])
        assert world.store.outcomes[job.meta.job_id, 0].document["error"]["code"] == "crashed"
        assert len(world.gateway.asked) == MAX_CLAIMS

    asyncio.run(story())


@pytest.mark.parametrize("fault", [Fault.REQUEST_LOST, Fault.ANSWER_LOST])
@pytest.mark.parametrize("size", [40_000, 300_000])
def test_an_answer_waits_for_a_bucket_that_is_away(world: World, size: int, fault: Fault) -> None:
    """It is on disk; asking for it again would be paid for again."""

    async def story() -> None:
        noise = random.Random(1).randbytes(size)
        world.gateway.answers["one"] = [response(noise)]
        world.restart(at("blobs.put_file", fault, 5))
        job = await world.ask("one")
        assert await world.answer() == []
        world.check(job.meta.job_id, ["done"])
        assert world.gateway.prompts == ["one"]
        assert world.blobs.blobs[world.store.outcomes[job.meta.job_id, 0].blob or ""][0] == noise

    asyncio.run(story())


def test_an_answer_does_not_wait_for_longer_than_its_worker_has(world: World) -> None:
    async def story() -> None:
        world.gateway.answers["one"] = [response(random.Random(1).randbytes(40_000))]
        world.restart(at("blobs.put_file", Fault.REQUEST_LOST, 1_000))
        job = await world.ask("one")
        before = world.clock.now
        assert len(await world.answer()) == 1
        assert world.clock.now - before <= REQUEST_SECONDS * 1000
        assert world.state(job).flight[0].claims == 0
        world.restart()
        await world.run_on(2)
        world.check(job.meta.job_id, ["done"])
        assert world.gateway.prompts == ["one", "one"]

    asyncio.run(story())


def test_a_store_that_fails_after_the_answer_hands_the_lease_back(world: World) -> None:
    async def story() -> None:
        job = await world.ask("one")
        world.restart(at("store.get_meta", Fault.REQUEST_LOST))
        await world.answer()
        assert world.state(job).flight[0].claims == 0
        await world.run_on(2)
        world.check(job.meta.job_id, ["done"])
        assert world.gateway.prompts == ["one"]

    asyncio.run(story())


def test_a_job_that_a_later_version_wrote_costs_no_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment is under way: the newer code goes on with it."""

    async def story() -> None:
        async def later(_: str) -> None:
            raise DataUnreadable("The item has version 2.")

        job = await world.ask("one")
        with monkeypatch.context() as patch:
            patch.setattr(world.store, "get_meta", later)
            assert len(await world.answer()) == 1
        assert not world.store.outcomes
        await world.run_on()
        world.check(job.meta.job_id, ["done"])
        assert world.gateway.prompts == ["one"]

    asyncio.run(story())


# retry and removal


def test_a_retry_has_inputs_of_its_own(world: World) -> None:
    async def story() -> None:
        world.gateway.answers[LARGE] = [response(b"no", 500), response(b"yes")]
        world.gateway.answers["small"] = [response(b"no", 500), response(b"yes")]
        job = await world.ask(LARGE, "fine", "small")
        await world.answer()
        retried = await world.retrier.retry(ANN, job.meta.job_id)
        assert (retried.meta.kind, retried.state.total) == ("inference", 2)
        await world.controller.delete(ANN, job.meta.job_id)
        await world.sweep()
        assert not [key for key in world.blobs.blobs if job.meta.job_id in key]
        await world.answer()
        world.check(retried.meta.job_id, ["done", "done"])
        assert [world.store.outcomes[retried.meta.job_id, n].document["attempts"] for n in (0, 1)] == [2, 2]
        assert (world.gateway.prompts.count(LARGE), world.gateway.prompts.count("small")) == (2, 2)

    asyncio.run(story())


def test_a_retry_of_a_job_that_is_deleted_meanwhile(world: World) -> None:
    async def story() -> None:
        world.gateway.answers[LARGE] = [response(b"no", 500)]
        job = await world.ask(LARGE)
        await world.answer()
        world.blobs.blobs.clear()
        before = len(world.store.metas)
        with pytest.raises(NotFound):
            await world.retrier.retry(ANN, job.meta.job_id)
        assert len(world.store.metas) == before

    asyncio.run(story())


def test_steering_needs_the_scope_of_the_job(world: World) -> None:
    async def story() -> None:
        job = await world.ask("one")
        other = dataclasses.replace(ANN, scopes=("fetch",))
        for act in (world.controller.cancel, world.controller.pause, world.retrier.retry, world.controller.delete):
            with pytest.raises(Forbidden):
                await act(other, job.meta.job_id)
        assert (await world.reader.look(other, job.meta.job_id))[0].kind == "inference"

    asyncio.run(story())


def test_an_answer_that_a_late_worker_stored_while_the_gateway_was_busy(world: World) -> None:
    """It stood still for longer than its lease; its answer is as good as any."""

    async def story() -> None:
        world.gateway.answers["one"] = [TargetBusy("It answered 429."), response()]
        job = await world.ask("one")
        await world.answer()
        document = {"path": "/v1/completions", "model": None, "id": None, "error": None, "attempts": 1}
        late = Outcome(0, world.clock.now, "done", 4, document, b"late")
        assert await world.store.put_outcome(job.meta.job_id, late, None)
        await world.run_on()
        world.check(job.meta.job_id, ["done"])
        assert world.store.outcomes[job.meta.job_id, 0].content == b"late"
        assert world.gateway.prompts == ["one"]

    asyncio.run(story())
