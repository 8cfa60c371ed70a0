"""Pacing of whole jobs: exact under concurrency, and waiting for a turn counts as nothing else."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from benchmarks.pacing import LIMITS, Course, play
from sift.pacing import Pace
from sift.services.pace import Pacer
from tests.unit.services.pacers import HOST
from tests.unit.services.world import World


def check_exact(course: Course) -> None:
    assert course.most_at_once <= LIMITS.concurrency
    # A fetch begins some ms after its slot: the claim of its target comes in between.
    assert course.most_in(9.9) <= 20
    starts = sorted(course.starts)
    assert all(later - first > 0.4 for first, later in itertools.pairwise(starts))
    assert set(course.statuses) == {"done"}


@pytest.mark.parametrize("seed", range(5))
def test_eight_workers_keep_rate_and_concurrency_with_one_write_at_most(seed: int) -> None:
    course = play(lambda number: 0.1 + number * 7 % 10 / 11, targets=40, seed=seed)
    check_exact(course)
    assert course.writes <= len(course.starts) == 160
    assert max(course.deliveries.values()) <= 2, "one extra delivery at most"
    assert max(course.starts) < 160 / LIMITS.rate + 15, "and no slower than need be"


@pytest.mark.parametrize("jobs", [1, 8])
def test_targets_that_come_one_by_one_cost_one_write_too(jobs: int) -> None:
    course = play(lambda number: 0.3, jobs=jobs, targets=20, batch=1)
    check_exact(course)
    assert course.writes <= len(course.starts) + 8, "refused once when all find the host idle"


@pytest.mark.parametrize("seed", range(3))
def test_slow_pages_hold_their_lanes(seed: int) -> None:
    course = play(lambda number: (0.5, 8.0, 2.1, 1.9, 30.0, 0.1)[number % 6], targets=25, seed=seed)
    check_exact(course)
    assert course.most_at_once == LIMITS.concurrency


@pytest.mark.parametrize("seconds", [6.0, 20.0])
def test_a_host_that_is_slow_as_a_rule_costs_less_than_a_write_too(seconds: float) -> None:
    course = play(lambda number: seconds)
    check_exact(course)
    assert course.writes <= len(course.starts) == 400


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("batch", [1, 10])
def test_a_host_that_changes_its_mind_is_paced_exactly(batch: int, seed: int) -> None:
    """Its tickets come further apart, and closer together again: what was promised to the ones before holds."""
    took = (0.3, 9.0, 4.0, 0.3, 15.0, 2.1)
    check_exact(play(lambda number: took[number // 25 % 6], targets=30, batch=batch, workers=4, seed=seed))


def test_a_host_that_asks_to_come_back_later_is_left_alone_by_everybody() -> None:
    course = play(lambda number: 0.3, targets=10, busy={6: 60.0})
    check_exact(course)
    starts = sorted(course.starts)
    gap = max(later - first for first, later in itertools.pairwise(starts))
    assert 58 < gap < 75
    assert sum(later > starts[6] + 0.4 for later in starts if later < starts[6] + 55) <= 1, "one was on its way"


def test_targets_that_wait_for_their_turn_are_neither_busy_nor_crashed() -> None:
    async def story() -> None:
        world = World()
        job = await world.submit(9)
        world.worker._pacer = Pacer(world.store, world.clock, LIMITS)
        world.store.paces[HOST] = Pace(world.clock.now + 20_000, 4)
        assert await world.deliver(10) == [], "their messages are sent anew"
        assert not world.site.fetched
        state = world.state(job)
        assert {(entry.claims, entry.busy_since) for entry in state.flight.values()} == {(0, None)}
        waiting = sorted(message.visible_at - world.clock.now for message in world.queue.waiting.values())
        assert waiting == [19_000, 19_000, 20_000, 20_000, 21_000, 21_000, 22_000, 22_000, 23_000]
        slots = [json.loads(message.body)["slot"] for message in world.queue.waiting.values()]
        assert [(at - world.clock.now, lane) for at, lane in slots] == [
            (20_000 + 500 * n, n % 4) for n in range(9)
        ]  # fmt: skip

    asyncio.run(story())


def test_targets_that_wait_for_minutes_are_not_sent_again() -> None:
    """Each copy would take a turn of its own, and make the line longer for everybody."""

    async def story() -> None:
        world = World()
        await world.submit(9)
        world.worker._pacer = Pacer(world.store, world.clock, LIMITS)
        world.store.paces[HOST] = Pace(after=world.clock.now + 500_000)
        await world.deliver(10)
        world.clock.now += 300_000
        assert (await world.sweep()).resent == 0
        assert len(world.queue.waiting) == 9

    asyncio.run(story())
