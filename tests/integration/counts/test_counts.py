"""How many AWS requests things cost, counted where they leave the clients."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.assemble import GOAL_MB, GOAL_OUTCOMES, measure
from benchmarks.inference import count_requests
from benchmarks.steady_state import CALLER, Deployment, Tally, run_job
from sift import ids
from sift.blobs.ports import LEAST_PART
from sift.jobs import Meta, State
from sift.services.keys import KeyService
from sift.services.purge import Purger
from sift.services.submit import Request
from sift.services.sweep import Sweeper
from sift.specs import Spec
from sift.store.ports import Outcome, Submission
from tests.integration.upstream.stub import StubGateway

URL = "https://example.com/"


def check_steady_state(tally: Tally, targets: int) -> None:
    assert tally.table_writes <= 3.1 * targets, tally.requests
    assert tally.table_reads <= 0.1 * targets, tally.requests
    assert tally.queue <= 0.4 * targets, tally.requests
    assert tally.table_writes >= 3 * targets, "each target is claimed, stored and finished"
    assert tally.of("s3") == 0, "contents of a usual size are in the table"


def test_the_steady_state_of_a_job_of_a_thousand_targets(deployment: Deployment) -> None:
    """Its submission and 400 of its targets; `benchmarks/steady_state.py` counts all of them."""
    check_steady_state(asyncio.run(run_job(deployment, 1_000, workers=1, worked=400)), 400)


def test_the_steady_state_with_four_workers(deployment: Deployment) -> None:
    """From the submission to the announced end, both included."""
    tally = asyncio.run(run_job(deployment, 250, workers=4, most_seconds=0.7))
    check_steady_state(tally, 250)
    assert tally.of("events") == 1


def test_a_request_to_the_gateway_costs_what_a_url_does_and_one_read() -> None:
    """Who submitted it is read before it is sent."""
    stub = StubGateway()
    try:
        tally = count_requests(stub.url(), 60)
    finally:
        stub.close()
    assert len(stub.received) == 60, "each is sent once"
    assert 3 * 60 <= tally.table_writes <= 3.2 * 60, tally.requests
    assert tally.table_reads <= 1.2 * 60, tally.requests
    assert tally.queue <= 0.5 * 60, tally.requests
    assert tally.of("s3") == 0


def test_a_submission_of_32_targets(deployment: Deployment) -> None:
    with deployment.counting() as tally:
        asyncio.run(deployment.submit(32))
    assert tally.table_writes == tally.requests["dynamodb", "TransactWriteItems"] == 1
    assert tally.queue == tally.requests["sqs", "SendMessageBatch"] <= 4
    assert tally.table_reads <= 2
    assert tally.of("s3") == tally.of("events") == 0


def test_a_status_read(deployment: Deployment) -> None:
    async def story() -> Tally:
        job_id = await deployment.submit(5)
        keys = KeyService(deployment.store, deployment.clock)
        key = await keys.create(tenant=CALLER.tenant, actor=CALLER.actor)
        with deployment.counting() as tally:
            identity = await keys.authenticate(key)
            await deployment.reader.job(identity, job_id)
        with deployment.counting() as again:
            identity = await keys.authenticate(key)
            await deployment.reader.wait(identity, job_id, 0)
        assert (again.table_reads, sum(again.requests.values())) == (1, 1), "the key is known for a while"
        return tally

    tally = asyncio.run(story())
    assert tally.table_reads <= 2
    assert sum(tally.requests.values()) == tally.table_reads


async def settled(deployment: Deployment, total: int, **values: Any) -> str:
    """A job of this size in which nothing is left to do, as its last worker would leave it."""
    job_id = await deployment.submit(total)
    job = await deployment.store.get_job(job_id)
    assert job is not None
    meta, state = job
    new_id = ids.new_job_id(deployment.clock.now_ms())
    made: tuple[Meta, State] = (
        dataclasses.replace(meta, job_id=new_id),
        dataclasses.replace(state, job_id=new_id, released=total, flight={}, **values),
    )
    submission = Submission(meta=made[0], state=made[1], idempotency=None, caller_cap=100, shard_cap=100)
    await deployment.store.commit(submission, deployment.clock.now_ms())
    return new_id


async def end_by_itself(deployment: Deployment, total: int) -> Counter[tuple[str, str]]:
    job_id = await settled(deployment, total, done=total - 1, failed=1)
    with deployment.counting() as tally:
        await deployment.advancer().advance(job_id)
    state = await deployment.store.get_state(job_id)
    assert state is not None
    assert state.status == "partial"
    return tally.requests


async def end_by_deadline(deployment: Deployment, total: int) -> Counter[tuple[str, str]]:
    job_id = await deployment.submit(total)
    state = await deployment.store.get_state(job_id)
    assert state is not None
    with deployment.counting() as tally:
        await deployment.advancer().settle(state, "failed", "deadline")
    ended = await deployment.store.get_state(job_id)
    assert ended is not None
    assert (ended.status, ended.error) == ("failed", "deadline")
    return tally.requests


async def cancel(deployment: Deployment, total: int) -> Counter[tuple[str, str]]:
    job_id = await deployment.submit(total)
    with deployment.counting() as tally:
        _, state = await deployment.controller.cancel(CALLER, job_id)
    assert state.status == "cancelled"
    return tally.requests


@pytest.mark.parametrize("end", [end_by_itself, end_by_deadline, cancel])
def test_an_end_costs_the_same_for_ten_targets_and_for_nine_thousand(deployment: Deployment, end: Any) -> None:
    small = asyncio.run(end(deployment, 10))
    large = asyncio.run(end(deployment, 9_000))
    assert small == large
    assert small["dynamodb", "TransactWriteItems"] == 1
    assert sum(small.values()) <= 9


def test_slots_without_contents_do_not_carry_them(deployment: Deployment) -> None:
    """A hundred slots are one segment: one query each way, and what it answers is a few hundred bytes a slot."""
    received: list[int] = []

    def weigh(http_response: Any, **_: Any) -> None:
        received.append(len(http_response.content))

    async def story() -> tuple[int, int]:
        job_id = await deployment.submit(100)
        for index in range(100):
            noise = random.Random(index).randbytes(20_000)
            document = {"url": URL, "id": None, "options": {}, "attempts": 1, "error": None, "meta": {"status": 200}}
            outcome = Outcome(index, 1, "done", len(noise), document, content=noise)
            await deployment.store.put_outcome(job_id, outcome, None)
        client = deployment.clients["dynamodb"]
        client.meta.events.register("after-call.dynamodb.Query", weigh)
        weights = []
        for content in (False, True):
            received.clear()
            found = await deployment.store.get_segment_outcomes(job_id, 0, 0, 99, content=content)
            assert [bool(outcome.content) for outcome in found.values()] == [content] * 100
            weights.append(sum(received))
        received.clear()
        page = await deployment.reader.page(CALLER, job_id, 0, 100, lambda slot: True)
        assert len(page.slots) == 100
        client.meta.events.unregister("after-call.dynamodb.Query", weigh)
        assert sum(received) <= weights[0] + 10_000, "the job itself is read as well"
        return weights[0], weights[1]

    without, whole = asyncio.run(story())
    assert without <= 100 * 700
    assert whole >= 100 * 20_000


@pytest.fixture
def unused() -> Iterator[Deployment]:
    """A deployment whose table is empty."""
    made = Deployment()
    yield made
    made.close()


def test_an_idle_sweep_is_one_read(unused: Deployment) -> None:
    """Of all shards that there can be; with something in one of them, the three sets of that one are read as well."""

    async def sweep() -> Counter[tuple[str, str]]:
        store, queue, clock = unused.store, unused.queue, unused.clock
        purger = Purger(store, unused.blobs, clock)
        sweeper = Sweeper(store, queue, clock, unused.advancer(), purger, visibility_seconds=540)
        with unused.counting() as tally:
            await sweeper.sweep(lambda: 55.0)
        return tally.requests

    async def story() -> None:
        assert await sweep() == {("dynamodb", "BatchGetItem"): 1}
        await unused.submit(5)
        assert await sweep() == {
            ("dynamodb", "BatchGetItem"): 1,
            ("dynamodb", "GetItem"): 3,
            ("dynamodb", "Query"): 1,
        }

    asyncio.run(story())


def test_the_same_work_again_costs_reads_only(deployment: Deployment) -> None:
    async def story() -> Tally:
        request = Request(targets=[Spec(f"{URL}{n}") for n in range(300)])
        await deployment.submitter.submit(CALLER, request)
        with deployment.counting() as tally:
            assert (await deployment.submitter.submit(CALLER, request)).reused
        return tally

    tally = asyncio.run(story())
    assert tally.requests == Counter({("dynamodb", "GetItem"): 1, ("dynamodb", "Query"): 1})


def test_the_hooks_see_every_request(deployment: Deployment) -> None:
    """A count of nothing would pass every limit."""
    with deployment.counting() as tally:
        for service, operation in (
            ("dynamodb", "list_tables"), ("sqs", "list_queues"), ("s3", "list_buckets"), ("events", "list_event_buses"),
        ):  # fmt: skip
            getattr(deployment.clients[service], operation)()
    assert {service for service, _ in tally.requests} == {"dynamodb", "sqs", "s3", "events"}
    deployment.clients["sqs"].list_queues()
    assert tally.queue == 1


def test_a_results_file() -> None:
    """A smaller one than `benchmarks/assemble.py` writes: the same memory, and as few requests for each part."""
    cost = measure(2_000)
    assert cost.lines == 2_000
    assert cost.file_bytes > 2 * LEAST_PART - 500_000, "of more than one part"
    assert cost.held_mb <= GOAL_MB
    assert 3 <= cost.of("s3") <= 2_000 / GOAL_OUTCOMES
    assert cost.requests["dynamodb.Query"] <= 25
