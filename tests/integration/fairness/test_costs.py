"""What a large job costs to take in, to watch and to steer, counted where requests leave the clients."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from benchmarks.steady_state import CALLER, Deployment, Tally
from benchmarks.submit import SIZES, Cost, item_size, make_request, submit
from sift.services.keys import KeyService


def test_a_submission_grows_no_faster_than_its_targets(deployment: Deployment) -> None:
    costs: dict[int, Cost] = {}
    for size in SIZES:
        costs[size] = asyncio.run(submit(deployment, make_request(size, seed=1)))
        assert costs[size].requests["TransactWriteItems"] == 1, "one commit, whatever the size"
        assert costs[size].requests["Query"] == 1
    for small, large in ((32, 1_000), (1_000, 9_000)):
        for measure in ("total", "writes", "bytes", "units"):
            before, after = (getattr(costs[size], measure) for size in (small, large))
            assert 0 < after <= before * large / small, (measure, small, large)
    assert costs[32].writes == costs[1_000].writes == 1, "the targets are in the commit itself"
    assert costs[9_000].requests["BatchWriteItem"] == 4, "90 segments ahead of the commit, 25 in each"
    assert costs[9_000].units < 9_000 / 10


def test_a_large_job_again_is_answered_without_writing_anything(deployment: Deployment) -> None:
    request = make_request(9_000, seed=2)
    asyncio.run(submit(deployment, request))
    again = asyncio.run(submit(deployment, request, reused=True))
    assert again.requests == Counter(GetItem=1, Query=1)


def test_sizes_are_counted_as_the_table_stores_them() -> None:
    assert item_size({"pk": {"S": "üb"}, "n": {"N": "1234"}, "b": {"B": "AAAA"}, "t": {"BOOL": True}}) == 5 + 5 + 4 + 2
    assert item_size({"m": {"M": {"a": {"L": [{"N": "1"}]}}}}) == 1 + 3 + 1 + (1 + 3 + 2 + 1)


async def pause_at_rest(deployment: Deployment, total: int) -> Tally:
    job_id = await deployment.submit(total)
    with deployment.counting() as tally:
        _, state = await deployment.controller.pause(CALLER, job_id)
    assert state.status == "paused"
    await deployment.controller.cancel(CALLER, job_id)
    return tally


async def submit_at_work(deployment: Deployment, total: int) -> str:
    """A job of which one target is running."""
    job_id = await deployment.submit(total)
    now = deployment.clock.now_ms()
    await deployment.store.claim(job_id, 0, now + 100_000, now)
    return job_id


async def pause_at_work(deployment: Deployment, total: int) -> Tally:
    job_id = await submit_at_work(deployment, total)
    with deployment.counting() as tally:
        _, state = await deployment.controller.pause(CALLER, job_id)
    assert state.status == "pausing"
    await deployment.controller.cancel(CALLER, job_id)
    return tally


async def cancel_at_work(deployment: Deployment, total: int) -> Tally:
    job_id = await submit_at_work(deployment, total)
    with deployment.counting() as tally:
        _, state = await deployment.controller.cancel(CALLER, job_id)
    assert state.status == "cancelled"
    return tally


async def settle_at_the_end(deployment: Deployment, total: int) -> Tally:
    """The last target of a job ends, and with it the job: what the finish of any target costs is not part of it."""
    job_id = await deployment.submit(total)
    now = deployment.clock.now_ms()
    index, state = 0, await deployment.store.get_state(job_id)
    assert state is not None
    while True:
        lease = now + 100_000
        await deployment.store.claim(job_id, index, lease, now)
        state = (await deployment.store.finish(job_id, index, lease, "done", 1)).state
        assert state is not None
        index += 1
        if index == total:
            break
        if not state.flight:
            count = min(32, total - index)
            await deployment.store.release(job_id, index, count, now - 5_000)
    with deployment.counting() as tally:
        await deployment.advancer().advance(job_id, state)
    ended = await deployment.store.get_state(job_id)
    assert ended is not None
    assert (ended.status, ended.done) == ("done", total)
    return tally


@pytest.mark.parametrize("steer", [pause_at_rest, pause_at_work, cancel_at_work])
def test_steering_costs_the_same_for_ten_targets_and_for_nine_thousand(deployment: Deployment, steer: Any) -> None:
    small, large = (asyncio.run(steer(deployment, total)) for total in (10, 9_000))
    assert small.requests == large.requests
    assert small.table_writes <= 3
    assert small.table_reads <= 4


def test_the_end_costs_the_same_for_ten_targets_and_for_more_than_a_window(deployment: Deployment) -> None:
    """Every target is worked on for real here; tests/integration/counts settles 9,000 that were not."""
    small, large = (asyncio.run(settle_at_the_end(deployment, total)) for total in (10, 40))
    assert small.requests == large.requests
    assert small.requests["dynamodb", "TransactWriteItems"] == 1


def test_watching_a_running_job_of_nine_thousand_takes_two_reads_at_most(deployment: Deployment) -> None:
    async def story() -> Tally:
        job_id = await deployment.submit(9_000)
        now = deployment.clock.now_ms()
        for index in range(32):
            await deployment.store.claim(job_id, index, now + 100_000 + index, now)
        keys = KeyService(deployment.store, deployment.clock)
        key = await keys.create(tenant=CALLER.tenant, actor=CALLER.actor)
        with deployment.counting() as tally:
            _, state = await deployment.reader.job(await keys.authenticate(key), job_id)
        assert (state.status, len(state.flight), state.total) == ("running", 32, 9_000)
        return tally

    tally = asyncio.run(story())
    assert tally.table_reads <= 2, "one for the key, until it is known, and one for the job"
    assert tally.requests.total() == tally.table_reads
