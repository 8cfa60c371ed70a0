"""What ends a run of the simulator."""

from __future__ import annotations

import asyncio

import pytest

from sift.errors import NotFound
from sift.queue.ports import Received
from sift.services.judge import Judge
from tests.simulation.processes import ANSWERS, break_off
from tests.unit.services.world import World


@pytest.mark.parametrize("error", [KeyError("x"), NotFound("not_found", "It is gone.", "Look.")])
def test_what_nobody_foresaw_of_a_message_breaks_the_run(error: Exception) -> None:
    """A refusal as well, with which an invocation of the API may end."""
    judge = Judge("a parcel", World().queue, None, lambda _: 5.0)
    judge.unforeseen = break_off  # type: ignore[method-assign]

    async def work(_: Received) -> None:
        raise error

    with pytest.raises(Exception) as caught:  # noqa: PT011
        asyncio.run(judge.judge_all([Received("1", "receipt", "body")], work))
    assert not isinstance(caught.value, ANSWERS)
    assert (caught.value is error) == (not isinstance(error, ANSWERS))
