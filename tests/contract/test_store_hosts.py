"""Contract of the table's items that pace hosts."""

from __future__ import annotations

import asyncio
from typing import Any

from sift.pacing import Claim, Pace
from tests.contract.conftest import NOW

HOST = "example.com"


def first(tickets: int = 1, exact: int | None = None, base: int = NOW) -> Claim:
    return Claim(tickets, False, base, 500, exact)


def queued(tickets: int = 1, exact: int | None = None, base: int = NOW) -> Claim:
    return Claim(tickets, True, base, 500, exact)


def test_tickets_are_issued_one_interval_after_the_other(store: Any) -> None:
    async def story() -> None:
        assert await store.get_pace(HOST) is None
        assert await store.claim_tickets(HOST, queued()) == (False, None), "nobody waits"
        assert await store.claim_tickets(HOST, first()) == (True, Pace(NOW + 500, 1))
        assert await store.claim_tickets(HOST, first()) == (False, Pace(NOW + 500, 1)), "somebody was quicker"
        assert await store.claim_tickets(HOST, queued(3)) == (True, Pace(NOW + 2_000, 4))
        later = NOW + 2_000
        assert await store.claim_tickets(HOST, queued(base=later)) == (False, Pace(later, 4)), "nobody waits any more"
        assert await store.claim_tickets(HOST, first(base=later)) == (True, Pace(later + 500, 5))
        assert await store.get_pace(HOST) == Pace(later + 500, 5)
        assert await store.get_pace("other.example") is None

    asyncio.run(story())


def test_those_who_queue_are_never_refused_and_never_go_together(store: Any) -> None:
    async def story() -> None:
        await store.claim_tickets(HOST, first())
        answers = await asyncio.gather(*(store.claim_tickets(HOST, queued()) for _ in range(12)))
        assert all(done for done, _ in answers)
        assert sorted(pace.next_at for _, pace in answers) == [NOW + 1_000 + 500 * n for n in range(12)]
        assert sorted(pace.issued for _, pace in answers) == list(range(2, 14))

    asyncio.run(story())


def test_one_of_many_finds_the_host_idle(store: Any) -> None:
    async def story() -> None:
        answers = await asyncio.gather(*(store.claim_tickets(HOST, first()) for _ in range(8)))
        assert [done for done, _ in answers].count(True) == 1

    asyncio.run(story())


def test_a_lane_is_held_until_it_is_freed(store: Any) -> None:
    async def story() -> None:
        await store.claim_tickets(HOST, first())
        await store.hold_lane(HOST, 2, NOW + 60_000)
        await store.hold_lane(HOST, 0, NOW + 50_000)
        pace = Pace(NOW + 500, 1, holds={0: NOW + 50_000, 2: NOW + 60_000})
        assert await store.get_pace(HOST) == pace
        assert await store.claim_tickets(HOST, queued(exact=2)) == (False, pace), "more were issued than was thought"
        await store.free_lane(HOST, 2, NOW + 1)
        assert await store.get_pace(HOST) == pace, "that is another's hold"
        for _ in range(2):
            await store.free_lane(HOST, 2, NOW + 60_000)
        done, left = await store.claim_tickets(HOST, queued(2, exact=1))
        assert (done, left) == (True, Pace(NOW + 1_500, 3, holds={0: NOW + 50_000}))

    asyncio.run(story())


def test_a_spacing_changes_for_who_saw_the_one_before(store: Any) -> None:
    async def story() -> None:
        await store.claim_tickets(HOST, first())
        wider = Claim(1, True, NOW, 2_000, None, 0, 2_000)
        pace = Pace(NOW + 2_500, 2, spacing=2_000)
        assert await store.claim_tickets(HOST, wider) == (True, pace)
        assert await store.claim_tickets(HOST, wider) == (False, pace)
        assert await store.claim_tickets(HOST, queued()) == (False, pace), "its ticket would be too close"
        done, pace = await store.claim_tickets(HOST, Claim(1, False, NOW + 7_000, 500, 2, 2_000, 0))
        assert (done, pace) == (True, Pace(NOW + 7_500, 3))
        assert (await store.claim_tickets(HOST, queued()))[0]

    asyncio.run(story())


def test_a_hold_of_a_host_that_is_forgotten_changes_nothing(store: Any) -> None:
    async def story() -> None:
        await store.hold_lane(HOST, 1, NOW)
        await store.free_lane(HOST, 1, NOW)
        assert await store.get_pace(HOST) is None

    asyncio.run(story())


def test_the_latest_time_that_a_host_asks_for_counts(store: Any) -> None:
    async def story() -> None:
        await store.slow_host(HOST, NOW + 9_000)
        assert await store.get_pace(HOST) == Pace(after=NOW + 9_000)
        await store.slow_host(HOST, NOW + 5_000)
        done, pace = await store.claim_tickets(HOST, first(base=NOW + 9_000))
        assert (done, pace) == (True, Pace(NOW + 9_500, 1, after=NOW + 9_000))

    asyncio.run(story())
