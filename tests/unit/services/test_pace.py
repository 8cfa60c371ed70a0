"""Pacing: exact under concurrency, one write at most, and what comes between a slot and its request."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
from collections.abc import Coroutine
from typing import Any

import pytest

from benchmarks.pacing import LIMITS, Course, play
from sift.classes import read_paces
from sift.errors import TargetBusy, TargetFailed, Unavailable
from sift.messages import NotAMessage, TargetMessage, decode
from sift.pacing import Pace, PaceLimits, Slot
from sift.services.pace import HELD_MS, HOLD_MS, SLOWED_MS, Later, PacedFetch, Pacer
from sift.store.memory import MemoryStore
from sift.targets import Content
from tests.simulation.loop import VirtualLoop
from tests.unit.services.world import ANN, World

HOST = "example.com"
JOB = "job_01M8MZ2A0038NKRKAYDXR834MK"
NOW = 1_796_000_000_000


class Clock:
    """The time of the loop."""

    def now_ms(self) -> int:
        return NOW + round(asyncio.get_running_loop().time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(story: Coroutine[Any, Any, None]) -> None:
    """In virtual time."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(story)
    finally:
        loop.close()


def pacers(count: int = 1) -> tuple[MemoryStore, list[Pacer]]:
    store = MemoryStore()
    return store, [Pacer(store, Clock(), LIMITS) for _ in range(count)]


async def ask(pacer: Pacer, turn: Slot, seconds: float, error: Exception | None = None) -> None:
    """A request that takes so long, and ends so."""
    async with pacer.running(HOST, turn):
        await asyncio.sleep(seconds)
        if error is not None:
            raise error


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


def test_tickets_of_a_slow_host_are_further_apart_and_hold_nothing() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        for _ in range(3):
            turn = await pacer.turn(HOST, near_ms=60_000)
            assert isinstance(turn, Slot)
            await ask(pacer, turn, 6)
        turn = await pacer.turn(HOST, near_ms=60_000)
        assert isinstance(turn, Slot)
        assert turn.span == 4 * store.paces[HOST].spacing > 6_500
        store.hold_lane = store.free_lane = None  # type: ignore[method-assign, assignment]
        await ask(pacer, turn, 6)
        for _ in range(8):
            turn = await pacer.turn(HOST, near_ms=60_000)
            assert isinstance(turn, Slot)
            await ask(pacer, turn, 0.2)
        turn = await pacer.turn(HOST, near_ms=60_000)
        assert (turn, store.paces[HOST].spacing) == (Slot(turn.at, turn.lane), 0)  # type: ignore[union-attr]

    run(story())


def test_those_who_find_every_lane_held_come_back_one_after_the_other() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        await asyncio.sleep(20)
        # All have been at it for twenty seconds: a lane ends each five.
        store.paces[HOST] = Pace(NOW, 4, holds=dict.fromkeys(range(4), NOW + HOLD_MS))
        turns = await asyncio.gather(*(pacer.turn(HOST) for _ in range(3)))
        assert turns == [Later(5_000, None), Later(10_000, None), Later(15_000, None)]

    run(story())


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


def test_a_turn_that_is_kept_is_waited_for_and_costs_no_other_write() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        store.paces[HOST] = Pace(NOW + 10_000, 4)
        turn = await pacer.turn(HOST)
        assert isinstance(turn, Later)
        assert (turn.wait_ms, turn.slot) == (10_000, Slot(NOW + 10_000, 0))
        before = store.paces[HOST]
        await asyncio.sleep(8)
        assert await pacer.turn(HOST, turn.slot) == turn.slot
        assert asyncio.get_running_loop().time() == 10
        assert store.paces[HOST] == before

    run(story())


def test_a_turn_that_was_missed_is_lost() -> None:
    async def story() -> None:
        _store, (pacer,) = pacers()
        await asyncio.sleep(5)
        turn = await pacer.turn(HOST, Slot(NOW + 4_999, 2))
        assert turn == Slot(NOW + 5_000, 0)

    run(story())


def test_a_lane_that_became_held_is_left_for_another() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        store.paces[HOST] = Pace(NOW + 2_000, 4)
        going = asyncio.create_task(pacer.turn(HOST))
        await asyncio.sleep(1)
        await store.hold_lane(HOST, 0, NOW + 60_000)
        turn = await going
        assert isinstance(turn, Slot)
        assert (turn.at, turn.lane) == (NOW + 2_500, 1)

    run(story())


def test_where_all_lanes_are_held_it_is_tried_again_in_seconds() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        store.paces[HOST] = Pace(NOW, 4, holds=dict.fromkeys(range(4), NOW + 60_000))
        assert await pacer.turn(HOST) == Later(HELD_MS, None)

    run(story())


def test_a_slow_request_holds_its_lane_until_it_ends() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        turn = await pacer.turn(HOST)
        assert isinstance(turn, Slot)
        async with pacer.running(HOST, turn):
            await asyncio.sleep(1.4)
            assert not store.paces[HOST].holds
            await asyncio.sleep(10)
            assert store.paces[HOST].held(turn.lane, NOW + 30_000)
        assert not store.paces[HOST].holds

    run(story())


@pytest.mark.parametrize("error", [TargetFailed("timeout", "It took too long."), TimeoutError(), ValueError()])
def test_an_error_of_the_request_is_its_own(error: Exception) -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        turn = await pacer.turn(HOST)
        assert isinstance(turn, Slot)
        with pytest.raises(type(error)) as caught:
            await ask(pacer, turn, 5, error)
        assert caught.value is error
        assert not store.paces[HOST].holds

    run(story())


def test_a_request_whose_hold_can_not_be_written_is_given_up_in_time() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        turn = await pacer.turn(HOST)
        assert isinstance(turn, Slot)

        async def away(*arguments: Any) -> None:
            raise Unavailable("The table is away.")

        store.hold_lane = store.free_lane = away  # type: ignore[method-assign]
        with pytest.raises(TargetBusy, match="turn"):
            await ask(pacer, turn, 30)
        assert asyncio.get_running_loop().time() == 2, "the next one of its lane may go"

    run(story())


def test_those_of_one_batch_share_a_write_and_its_failure() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        calls = []
        claim = store.claim_tickets

        async def counted(*arguments: Any) -> Any:
            calls.append(arguments)
            return await claim(*arguments)

        store.claim_tickets = counted  # type: ignore[method-assign]
        turns = await asyncio.gather(*(pacer.turn(HOST, near_ms=0) for _ in range(10)))
        assert len(calls) == 1
        assert sorted(turn.at if isinstance(turn, Slot) else NOW + turn.wait_ms for turn in turns) == [
            NOW + 500 * n for n in range(10)
        ]  # fmt: skip

        async def away(*arguments: Any) -> Any:
            raise Unavailable("The table is away.")

        store.get_pace = away  # type: ignore[method-assign]
        failed = await asyncio.gather(*(pacer.turn(HOST) for _ in range(3)), return_exceptions=True)
        assert {type(error) for error in failed} == {Unavailable}
        assert not pacer._waiting

    run(story())


def test_no_host_closes_itself_to_others_for_longer_than_ten_minutes() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        await pacer.slow(HOST, 10**9)
        assert store.paces[HOST].after == NOW + SLOWED_MS

    run(story())


def test_the_operators_own_hosts_are_not_paced() -> None:
    pacer = Pacer(MemoryStore(), Clock(), LIMITS, own=lambda host: host == "127.0.0.1")
    assert pacer.host_of("http://127.0.0.1:8700/x") is None
    assert pacer.host_of("no url") is None
    assert pacer.host_of("https://Example.com/x") == HOST


def test_one_target_now_waits_for_its_turn_or_is_told_when() -> None:
    async def story() -> None:
        store, (pacer,) = pacers()
        fetched = []

        async def fetch(url: str, options: Any, deadline_s: float, *, gone: Any = None) -> Content:
            fetched.append((asyncio.get_running_loop().time(), gone))
            if url.endswith("busy"):
                raise TargetBusy("It answered 429.", status=429, retry_after=30)
            return Content(b"x", "text/plain")

        paced = PacedFetch(fetch, pacer)
        for _ in range(3):
            await paced(f"https://{HOST}/", None, 25.0)
        assert [moment for moment, _ in fetched] == [0.0, 0.5, 1.0]
        store.paces[HOST] = dataclasses.replace(store.paces[HOST], next_at=NOW + 40_000)
        with pytest.raises(TargetBusy, match="turn") as busy:
            await paced(f"https://{HOST}/", None, 25.0)
        assert busy.value.retry_after == 39
        assert store.paces[HOST].next_at == NOW + 40_000, "no turn was taken"
        gone = TargetFailed("http_error", "gone")
        await paced(f"https://{HOST}/", None, 25.0, gone=gone)
        assert fetched[-1][1] is gone, "only an archive is asked"
        with pytest.raises(TargetBusy, match="429"):
            await paced("https://other.example/busy", None, 25.0)
        assert store.paces["other.example"].after == NOW + 31_000

    run(story())


@pytest.mark.parametrize("slot", ["1", [1], [1, 2, 3, 4], ["1", 2], [True, 1], [1, 2, "3"], None, {}])
def test_a_slot_of_another_form_is_no_message(slot: Any) -> None:
    for sound in (Slot(5, 2), Slot(5, 2, 8_000)):
        body = json.loads(TargetMessage(JOB, 1, "https://example.com/", slot=sound).encode())
        found = decode(json.dumps(body))
        assert isinstance(found, TargetMessage)
        assert found.slot == sound
    with pytest.raises(NotAMessage):
        decode(json.dumps(body | {"slot": slot}))


CLASSES = {"batch": PaceLimits(10, 10)}


def test_a_class_with_a_pace_of_its_own_has_a_line_of_its_own() -> None:
    async def story() -> None:
        store = MemoryStore()
        pacer = Pacer(store, Clock(), LIMITS, classes=CLASSES)
        url = f"https://{HOST}/"
        turns = [await pacer.turn_of(url, pace=pace) for pace in (None, "batch", "batch", "gone")]
        assert turns == [Slot(NOW, 0), Slot(NOW, 0), Slot(NOW + 100, 1), Slot(NOW + 500, 1)]
        assert set(store.paces) == {HOST, f"{HOST}#batch"}
        slot = turns[2]
        assert isinstance(slot, Slot)
        with pytest.raises(TargetBusy):
            async with pacer.in_turn(url, slot, "batch"):
                raise TargetBusy("It answered 503.", status=503, retry_after=40)
        assert {pace.after for pace in store.paces.values()} == {NOW + 40_500}, (
            "a host that is busy is so for everybody"
        )

    run(story())


@pytest.mark.parametrize(("named", "pace"), [("batch", "batch"), ("plain", None), ("default", None)])
def test_targets_carry_the_class_by_whose_pace_they_are_asked(named: str, pace: str | None) -> None:
    async def story() -> None:
        limits = World().limits
        world = World(classes={"batch": limits, "plain": limits})
        world.terms = dataclasses.replace(world.terms, paced=frozenset({"batch"}))
        world.restart()
        await world.submit(3, who=dataclasses.replace(ANN, caller_class=named), window=1)
        for _ in range(3):  # of the submission, and of what is released later
            ((receipt, message),) = world.queue.receive(1)
            found = decode(message.body)
            assert isinstance(found, TargetMessage)
            assert found.pace == pace
            world.queue.waiting[receipt].visible_at = 0
            await world.deliver(1)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ('{"host_rate": 5}', "come together"), ('{"host_concurrency": 5}', "come together"),
        ('{"host_rate": 5, "host_concurrency": 4}', "too few"), ('{"host_rate": 0, "host_concurrency": 4}', "1 to 100"),
        ('{"host_rate": 1, "host_concurrency": true}', "1 to 100"),
        ('{"host_rate": "1", "host_concurrency": 1}', "1 to 100"),
    ],
)  # fmt: skip
def test_a_pace_that_can_not_be_is_refused(limits: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_paces(f'{{"batch": {limits}}}')


def test_paces_of_classes() -> None:
    text = '{"batch": {"host_rate": 5, "host_concurrency": 8, "window": 4}, "trial": {"window": 2}}'
    assert read_paces(text) == {"batch": PaceLimits(5, 8)}
    assert read_paces("") == {}
