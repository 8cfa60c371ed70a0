"""Caller classes with a pace of their own."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from benchmarks.pacing import LIMITS
from sift.classes import read_paces
from sift.errors import TargetBusy
from sift.messages import TargetMessage, decode
from sift.pacing import PaceLimits, Slot
from sift.services.pace import Pacer
from sift.store.memory import MemoryStore
from tests.unit.services.pacers import HOST, NOW, Clock, run
from tests.unit.services.world import ANN, World

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
