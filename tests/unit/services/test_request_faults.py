"""One fault at each single call of an inference job's life: it ends with one outcome each, and nothing that was
answered and stored is asked for again."""

from __future__ import annotations

import asyncio
import functools
import random

import pytest

from sift.errors import TargetBusy, TargetCut, Unavailable
from sift.model_requests import INLINE_BODY_BYTES
from tests.unit.services.fake_gateway import STALLED, response
from tests.unit.services.faults import Fault, Killed, Plan, at_number
from tests.unit.services.world import ANN, World

LONG = "x" * (INLINE_BODY_BYTES + 1)
NOISE = random.Random(1).randbytes(40_000)
#: How often each prompt is sent when nothing goes wrong.
SENT = {"fine": 1, LONG: 1, "wrong": 1, "busy": 2, "cut": 2, "large": 1, "paused": 2}
ENDS = ["done", "done", "failed", "done", "done", "done", "done"]
#: A fault of these between the sending and the storing of an answer may cost another sending, and no other may.
ONCE_MORE = {"store.put_outcome", "blobs.put_file", "store.get_state"}


async def live_through(plan: Plan | None) -> World:
    """A job whose requests meet with all that a gateway does, paused once on the way."""
    world = World()
    world.gateway.answers = {
        "wrong": [response(b"no", 400)],
        "busy": [TargetBusy("It answered 429."), response()],
        "cut": [TargetCut("It broke off."), response()],
        "large": [response(NOISE)],
        "paused": [STALLED, response()],
    }

    async def pause() -> None:
        (job_id,) = world.store.metas
        await world.store.pause(job_id, "pausing", world.clock.now)

    world.gateway.during["paused"] = pause
    life = world.restart(plan)
    try:
        await world.ask(*SENT, window=3)
    except Unavailable:
        await world.ask(*SENT, window=3)
    except Killed:
        await world.bury_process()
        await world.ask(*SENT, window=3)
    for _ in range(60):
        with_pause = any(state.status == "paused" for state in world.store.states.values())
        if with_pause:
            (job_id,) = world.store.metas
            try:
                await world.controller.resume(ANN, job_id)
            except Unavailable:
                pass
            except Killed:
                await world.bury_process()
        try:
            await world.run_on(minutes=1)
        except AssertionError:
            continue  # not over yet
        break
    world.first_life = life  # type: ignore[attr-defined]
    return world


@functools.cache
def calls() -> tuple[str, ...]:
    """The calls of that life when nothing goes wrong."""
    world = asyncio.run(live_through(None))
    assert {prompt: world.gateway.prompts.count(prompt) for prompt in SENT} == SENT
    return tuple(world.first_life.calls)  # type: ignore[attr-defined]


def test_the_life_makes_every_call_of_a_request() -> None:
    assert {
        "store.claim", "store.get_meta", "store.get_state", "store.get_segment_outcomes", "store.put_outcome",
        "store.finish", "store.abandon", "store.hand_back", "store.end_pause", "store.resume", "requests.send",
        "requests.set_visibility", "blobs.put", "blobs.get", "blobs.put_file",
    } <= set(calls())  # fmt: skip


@pytest.mark.parametrize("fault", list(Fault))
def test_no_single_fault_loses_a_request_or_sends_it_in_vain(fault: Fault) -> None:
    for number in range(len(calls())):
        random.seed(number)
        world = asyncio.run(live_through(at_number(number, fault)))
        name = world.first_life.calls[number]  # type: ignore[attr-defined]
        if (name, fault) == ("store.settle", Fault.REPEATED):
            continue  # a transaction that the SDK repeats carries the same token and answers the same
        (job_id,) = world.store.metas
        world.check(job_id, ENDS)
        assert world.quiet(), (number, name)
        more = {prompt[:9]: world.gateway.prompts.count(prompt) - often for prompt, often in SENT.items()}
        died = fault in {Fault.DEATH_BEFORE, Fault.DEATH_AFTER}
        # A process that dies takes what it had in flight along; a fault of one call is that of one request.
        most = 3 if died else 1 if name in ONCE_MORE else 0
        assert sum(max(0, count) for count in more.values()) <= most, (number, name, more)
