"""Turns at a host: one write at most for each, held as long as the request takes, and given up when they can't be."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest

from benchmarks.pacing import LIMITS
from sift.errors import TargetBusy, TargetFailed, Unavailable
from sift.messages import NotAMessage, TargetMessage, decode
from sift.pacing import Pace, Slot
from sift.services.pace import HELD_MS, HOLD_MS, SLOWED_MS, Later, PacedFetch, Pacer
from sift.store.memory import MemoryStore
from sift.targets import Content
from tests.unit.services.pacers import HOST, NOW, Clock, pacers, run

JOB = "job_01M8MZ2A0038NKRKAYDXR834MK"


async def ask(pacer: Pacer, turn: Slot, seconds: float, error: Exception | None = None) -> None:
    """A request that takes so long, and ends so."""
    async with pacer.running(HOST, turn):
        await asyncio.sleep(seconds)
        if error is not None:
            raise error


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


def test_a_busy_host_is_busy_even_where_nobody_can_be_told(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        store, (pacer,) = pacers()

        async def away(*arguments: Any) -> Any:
            raise Unavailable("The table is away.")

        store.slow_host = away  # type: ignore[method-assign]
        turn = await pacer.turn(HOST)
        assert isinstance(turn, Slot)
        with pytest.raises(TargetBusy, match="429"):
            async with pacer.in_turn(f"https://{HOST}/x", turn):
                raise TargetBusy("It answered 429.", status=429)

    run(story())
    assert [line.message for line in caplog.records if line.name == "sift.services.pace"] == [
        "others are not told that a host asks to come back later: The table is away."
    ]  # fmt: skip


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
