"""What a worker asks of a runner: to do what a target that is claimed asks for. Each kind of target has its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sift.errors import TargetFailed
from sift.jobs import Flight, State
from sift.messages import Message
from sift.queue.ports import Received
from sift.store.ports import Outcome


@dataclass(frozen=True, slots=True)
class Claimed:
    """A target that is mine until the lease ends."""

    received: Received
    message: Message
    lease: int
    state: State
    entry: Flight

    @property
    def attempts(self) -> int:
        """How often it was tried, this time included."""
        return self.message.attempts + max(self.entry.claims, self.received.receives)


class Stopped(Exception):
    """A run was given up, for its job does not go on: it is pausing, ending or over."""


class Runner(Protocol):
    """Does what the targets of one kind ask for. `seconds` is the most that one of them may take; `isolates` says
    whether one that may have crashed its worker runs alone."""

    @property
    def seconds(self) -> float: ...

    @property
    def isolates(self) -> bool: ...

    async def run(self, claimed: Claimed, seconds: float, *, gone: TargetFailed | None = None) -> Outcome:
        """The outcome of a target within so many seconds; its content is stored by then, when it is large.

        `gone` is why the target is given up: it is raised, unless there is something to do instead of trying again.
        Raises TargetFailed, TargetBusy, TargetCut, Stopped or Unavailable.
        """
        ...


def crashed() -> TargetFailed:
    """Why a target that fails its workers is given up."""
    return TargetFailed(
        "crashed",
        "The target could not be worked on: its workers failed.",
        "Look at the worker's log, and try it in a job of its own.",
    )


def check_budget(state: State, size: int) -> None:
    """Raises TargetFailed when so many bytes more would bring the job over what it may store."""
    if state.bytes + size > state.budget:
        raise TargetFailed(
            "over_budget",
            f"The job may store {state.budget} bytes of content, and {size} more would be over.",
            "Split the job, narrow the targets (mode, pages), or ask for a larger budget.",
        )
