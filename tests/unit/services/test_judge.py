"""What becomes of a received message, whatever its work comes to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from sift import logs
from sift.errors import DataUnreadable, Unavailable
from sift.messages import NotAMessage
from sift.queue.ports import Received
from sift.services.judge import LATER_VERSION_SECONDS, MOST_SECONDS, Judge

AWAY = Unavailable("The port is away.")
REPEAT = 7.0


class Ports:
    """A queue and its dead letters, which fail as they are told to."""

    def __init__(self, *, hide: list[Exception] | None = None, bury: list[Exception] | None = None) -> None:
        self._hide, self._bury = hide or [], bury or []
        self.hidden: list[tuple[str, int]] = []
        self.buried: list[tuple[str, str]] = []

    async def set_visibility(self, receipt: str, seconds: int) -> None:
        if self._hide:
            raise self._hide.pop()
        self.hidden.append((receipt, seconds))

    async def bury(self, body: str, reason: str) -> None:
        if self._bury:
            raise self._bury.pop()
        self.buried.append((body, reason))


def judge(ports: Ports, *ends: float | Exception | None, dead_letters: bool = True) -> list[str]:
    """Judges one message for each end that its work comes to; answers with those that stay."""

    async def work(received: Received) -> float | None:
        end = ends[int(received.message_id)]
        if isinstance(end, Exception):
            raise end
        return end

    batch = [Received(str(number), f"receipt {number}", f"body {number}") for number in range(len(ends))]
    made = Judge("a parcel", ports, ports if dead_letters else None, lambda _: REPEAT)  # type: ignore[arg-type]
    return asyncio.run(made.judge_all(batch, work))


@pytest.mark.parametrize(
    ("end", "seconds"),
    [
        (0.0, 0),
        (1.2, 2),
        (-3.0, 0),
        (1e9, MOST_SECONDS),
        (AWAY, REPEAT),
        (DataUnreadable("It is of a later version."), LATER_VERSION_SECONDS),
    ],
)
def test_what_is_to_come_again_is_hidden_for_its_wait(end: float | Exception, seconds: int) -> None:
    ports = Ports()
    assert judge(ports, end) == ["0"]
    assert ports.hidden == [("receipt 0", seconds)]


def test_what_is_done_with_is_let_go() -> None:
    ports = Ports()
    assert judge(ports, None) == []
    assert ports.hidden == ports.buried == []


def test_a_wait_that_the_queue_did_not_take_is_a_fault_like_another() -> None:
    ports = Ports(hide=[AWAY])
    assert judge(ports, 600.0) == ["0"]
    assert ports.hidden == [("receipt 0", REPEAT)]


@pytest.mark.parametrize("end", [600.0, AWAY, DataUnreadable("It is of a later version.")])
def test_while_the_queue_is_away_a_message_comes_back_by_itself(
    end: float | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    ports = Ports(hide=[AWAY, AWAY])
    assert judge(ports, end) == ["0"]
    assert ports.hidden == []
    assert caplog.messages[-1].startswith("the message comes back after the queue's own timeout")


def test_what_sift_did_not_write_is_buried_once_that_is_possible() -> None:
    ports = Ports(bury=[AWAY])
    foreign = NotAMessage("It is a poem.")
    assert judge(ports, foreign) == ["0"]
    assert judge(ports, foreign) == []
    assert ports.buried == [("body 0", "It is a poem.")]


def test_without_dead_letters_of_its_own_it_is_left_to_the_queue() -> None:
    ports = Ports()
    assert judge(ports, NotAMessage("It is a poem."), dead_letters=False) == ["0"]
    assert ports.hidden == [("receipt 0", 0)]


def test_what_nobody_foresaw_stays_and_takes_nobody_along(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = Ports()
    told: list[Mapping[str, Any]] = []
    unforeseen = Judge.unforeseen
    monkeypatch.setattr(Judge, "unforeseen", lambda one: (told.append(logs.subject()), unforeseen(one)))
    assert judge(ports, None, RuntimeError("a fault"), 3.0) == ["1", "2"]
    assert told == [{"message_id": "1"}], "whatever its work did not come to say"
    assert ports.hidden == [("receipt 2", 3)]
    assert [(line.levelno, line.message) for line in caplog.records] == [
        (logging.ERROR, "a parcel stays on the queue")
    ]  # fmt: skip
