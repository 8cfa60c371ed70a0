"""Races of 64 threads for what only one may have, and whether moto answers as AWS's own engine does."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from sift import ids
from sift.errors import Unavailable
from sift.jobs import Flight, State
from sift.store.dynamo import DynamoStore
from sift.store.ports import CapReached, Changed, Committed, Duplicate, Outcome, Store, Submission
from tests.contract.conftest import HOUR, NOW, Deployed, needs_engine, new_table, submission
from tests.contract.engine import Engine

RACERS = 64
#: Changes of one course of the comparison.
STEPS = 100
T = TypeVar("T")


def race(attempts: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """All at once, each call in a thread of its own; whoever is told to come again does so, as any client would."""

    async def insist(attempt: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await attempt()
            except Unavailable:
                await asyncio.sleep(random.random())

    async def story() -> list[T]:
        with ThreadPoolExecutor(RACERS) as threads:
            asyncio.get_running_loop().set_default_executor(threads)
            return await asyncio.gather(*map(insist, attempts))

    return asyncio.run(story())


def commits(store: Store, made: Sequence[Submission]) -> list[Any]:
    return race([lambda one=one: store.commit(one, NOW) for one in made])  # type: ignore[misc]


def test_a_race_for_the_cap_of_a_caller(store: Store) -> None:
    made = [submission(caller_cap=3, shard_cap=999) for _ in range(RACERS)]
    answers = commits(store, made)
    assert Counter(answers) == {Committed(): 3, CapReached("caller"): RACERS - 3}
    winners = sorted(one.meta.job_id for one, answer in zip(made, answers, strict=True) if answer == Committed())

    async def look() -> None:
        assert await store.caller_live("acme/ann") == winners
        assert await store.live_jobs(0) == winners
        assert await store.count_jobs("acme/ann", NOW, 999) == 3
        found = await store.get_jobs([one.meta.job_id for one in made])
        assert sorted(meta.job_id for meta, _ in found) == winners

    asyncio.run(look())


def test_a_race_for_the_cap_of_all_callers(store: Store) -> None:
    made = [submission(caller=f"acme/{n}", caller_cap=1, shard_cap=8) for n in range(RACERS)]
    answers = commits(store, made)
    assert Counter(answers) == {Committed(): 8, CapReached("shard"): RACERS - 8}
    winners = sorted(one.meta.job_id for one, answer in zip(made, answers, strict=True) if answer == Committed())

    async def look() -> None:
        assert await store.live_jobs(0) == winners
        for one, answer in zip(made, answers, strict=True):
            assert len(await store.caller_live(one.meta.caller)) == (answer == Committed()), "no slot without a job"

    asyncio.run(look())


def test_a_race_of_the_same_work(store: Store) -> None:
    made = [submission(idempotency="k", caller_cap=999, shard_cap=999) for _ in range(RACERS)]
    answers = commits(store, made)
    (winner,) = (one for one, answer in zip(made, answers, strict=True) if answer == Committed())
    assert winner.idempotency is not None
    assert Counter(answers) == {Committed(): 1, Duplicate(winner.idempotency): RACERS - 1}
    assert asyncio.run(store.live_jobs(0)) == [winner.meta.job_id]


def test_a_race_of_the_same_work_for_the_last_slot(store: Store) -> None:
    """Whoever comes late is told of the job that holds the slot, and never that the slot is taken."""
    made = [submission(idempotency=f"k{n % 2}", work=f"w{n % 2}", caller_cap=1) for n in range(RACERS)]
    answers = commits(store, made)
    tally = Counter(type(answer) for answer in answers)
    assert tally == {Committed: 1, Duplicate: RACERS // 2 - 1, CapReached: RACERS // 2}


def test_a_race_for_one_target(store: Store) -> None:
    made = submission(total=1)
    job_id = made.meta.job_id
    asyncio.run(store.commit(made, NOW))
    leases = [NOW + 100_000 + n for n in range(RACERS)]
    claims = race([lambda lease=lease: store.claim(job_id, 0, lease, NOW) for lease in leases])  # type: ignore[misc]
    (mine,) = (lease for lease, claim in zip(leases, claims, strict=True) if claim.ok)
    finishes = race(
        [lambda lease=lease: store.finish(job_id, 0, lease, "done", 7) for lease in leases]  # type: ignore[misc]
    )
    assert [lease for lease, finish in zip(leases, finishes, strict=True) if finish.ok] == [mine]
    state = asyncio.run(store.get_state(job_id))
    assert state is not None
    assert (state.done, state.bytes, state.flight) == (1, 7, {})


def test_a_race_to_the_end_and_back(store: Store) -> None:
    """Each of 64 callers takes the slot as soon as another gives it back; it is never held twice, and free at last."""
    live: set[str] = set()
    most = 0

    async def take_a_turn() -> None:
        nonlocal most
        one = submission(caller_cap=2, shard_cap=2, total=1)
        while await store.commit(one, NOW) != Committed():
            await asyncio.sleep(random.random() / 4)
        live.add(one.meta.job_id)
        most = max(most, len(live))
        live.discard(one.meta.job_id)  # before the slot is free: another may have it at once
        assert (await store.settle(one.meta, one.state, "cancelled", None, NOW, None)).ok

    race([take_a_turn] * 16)
    assert most <= 2
    assert asyncio.run(store.live_jobs(0)) == asyncio.run(store.caller_live("acme/ann")) == []
    assert len(asyncio.run(store.outbox(0))) == 16


def test_a_list_is_walked_to_its_end_while_jobs_leave_it(store: Store) -> None:
    """At the end of a page that is exactly full, moto says that nothing follows, and the engine does not know yet."""

    async def story() -> None:
        made = [submission(ids.new_job_id(NOW + n), caller_cap=9) for n in range(6)]
        for one in made:
            await store.commit(one, NOW)
        walked: list[str] = []
        before: str | None = None
        while True:
            page, before = await store.list_jobs("acme/ann", NOW, before, 2)
            walked += page
            if before is None:
                break
            if len(walked) == 2:  # the one that the cursor names is deleted
                await store.settle(made[4].meta, made[4].state, "cancelled", None, NOW, None)
                assert (await store.hide(made[4].meta, NOW)).ok
        assert walked == [one.meta.job_id for one in reversed(made)]

    asyncio.run(story())


class Twins:
    """The same store on moto and on the engine: each call goes to both, and both must answer alike."""

    def __init__(self, moto: DynamoStore, engine: DynamoStore) -> None:
        self._stores = (moto, engine)

    async def call(self, name: str, *arguments: Any) -> Any:
        ours, real = [await getattr(store, name)(*arguments) for store in self._stores]
        assert ours == real, (name, arguments)
        return ours


def _steps(random_: random.Random, made: Submission, seen: State) -> list[tuple[str, tuple[Any, ...]]]:
    """One of each change of a job, with values that are right about half of the time."""
    job_id, meta = made.meta.job_id, made.meta
    index = random_.randrange(seen.total)
    entry = seen.flight.get(index, Flight(NOW))
    now = NOW + random_.choice([0, 1, 7, HOUR])
    lease = random_.choice([entry.until, now + 5])
    end: Any = random_.choice(["done", "failed"])
    some = {i: seen.flight[i] for i in list(seen.flight)[: random_.randrange(1, 5)]}
    expires_at = random_.choice([None, NOW // 1000 + 9])
    content: dict[str, Any] = random_.choice([{"content": b"x"}, {"blob": "b"}])
    return [
        ("claim", (job_id, index, now + random_.randrange(9), now)),
        ("claim", (job_id, index, now + random_.randrange(9), now)),
        ("finish", (job_id, index, lease, end, 9)),
        ("hand_back", (job_id, index, lease, NOW, random_.choice([None, NOW + 3]))),
        ("abandon", (job_id, index, lease, NOW)),
        ("release", (job_id, seen.released, max(1, min(32, seen.total - seen.released)), NOW)),
        ("touch", (job_id, some or {0: entry}, NOW + 1)),
        ("pause", (job_id, random_.choice(["pausing", "paused"]), now)),
        ("end_pause", (job_id, seen.pausing_at or now)),
        ("resume", (job_id,)),
        ("cancel", (job_id,)),
        ("put_outcome", (job_id, Outcome(index, lease, end, 1, {"n": 1}, **content), expires_at)),
        ("settle", (meta, seen, random_.choice(["done", "partial"]), random_.choice([None, "deadline"]), now, None)),
        ("settle", (meta, seen, "cancelled", None, now, expires_at)),
        ("hide", (meta, now)),
        ("commit", (made, now)),
        ("drop_idempotency", (meta.idempotency, random_.choice([job_id, ids.new_job_id(NOW)]))),
        ("leave_outbox", (0, job_id)),
        ("leave_removals", (0, job_id)),
        ("remove_segment", (job_id, random_.randrange(2))),
    ]


def _looks(made: Submission) -> list[tuple[str, tuple[Any, ...]]]:
    """Every read."""
    job_id, caller = made.meta.job_id, made.meta.caller
    return [
        ("get_job", (job_id,)),
        ("get_jobs", ([job_id, ids.new_job_id(NOW)],)),
        ("get_segment", (job_id, 0)),
        ("get_segment_outcomes", (job_id, 0, 0, 99)),
        ("get_idempotency", (made.meta.idempotency,)),
        ("live_jobs", (0,)),
        ("used_shards", (20,)),
        ("caller_live", (caller,)),
        ("outbox", (0,)),
        ("removals", (0,)),
        ("count_jobs", (caller, NOW + 10_000, 99)),
        ("list_jobs", (caller, NOW + 10_000, None, 99)),
    ]


@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"engine-{seed}", marks=needs_engine) for seed in range(8)])
def test_moto_answers_as_the_engine_does(deployed: Deployed, request: pytest.FixtureRequest, seed: int) -> None:
    """What the other tests prove on moto holds on AWS as far as moto answers like it: values, refusals and all."""
    engine: Engine = request.getfixturevalue("engine")
    moto = deployed.client("dynamodb")
    twins = Twins(
        DynamoStore(moto, new_table(deployed)), DynamoStore(engine.client, new_table(deployed, engine.client))
    )
    random_ = random.Random(seed)
    accepted: Counter[str] = Counter()

    async def story() -> None:
        jobs = [
            submission(total=40, released=8, idempotency=f"k{n % 2}", caller_cap=2, shard_cap=3, expires_in=expires_in)
            for n, expires_in in enumerate((HOUR, None, HOUR, HOUR))
        ]
        for made in jobs:
            await twins.call("commit", made, NOW)
        for _ in range(STEPS):
            made = random_.choice(jobs)
            seen = await twins.call("get_state", made.meta.job_id) or made.state
            name, arguments = random_.choice(_steps(random_, made, seen))
            answer = await twins.call(name, *arguments)
            accepted[name] += answer.ok if isinstance(answer, Changed) else 1
        for made in jobs:
            for name, arguments in _looks(made):
                await twins.call(name, *arguments)

    asyncio.run(story())
    assert sum(accepted.values()) > 5
