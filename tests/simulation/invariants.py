"""What must hold of any stored state and of any change of one, as told from the table alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from sift.jobs import Meta, State
from sift.store.ports import Outcome

# In words of their own: these checks must not lean on the tables of the code that they check.
ACTIVE = {"queued", "running"}
LIVE = {"queued", "running", "pausing", "paused", "cancelling"}
ENDED = {"done", "partial", "failed", "cancelled"}
COURSE = {
    "queued": {"running", "paused", "cancelling"} | ENDED,
    "running": {"pausing", "cancelling"} | ENDED,
    "pausing": {"paused", "cancelling"} | ENDED,
    "paused": {"queued", "cancelling"} | ENDED,
    "cancelling": {"cancelled"},
}


class Broken(BaseException):
    """An invariant does not hold. Nothing in the code under test may catch this."""

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant
        self.detail = detail


def broken(invariant: str, detail: str) -> NoReturn:
    raise Broken(invariant, detail)


def check_state(state: State, outcomes: Mapping[tuple[str, int], Outcome]) -> None:
    """One state as stored."""
    out = len(state.flight)
    job = state.job_id
    if state.status not in LIVE | ENDED:
        broken("course", f"{job} is {state.status}")
    if not state.done + state.failed + out == state.released <= state.total:
        broken("2 counters", f"{job}: {state.done} + {state.failed} + {out} out, {state.released} released")
    if out > state.window:
        broken("window", f"{job}: {out} out, window {state.window}")
    if any(not 0 <= index < state.released for index in state.flight):
        broken("2 counters", f"{job}: out beyond the cursor: {sorted(state.flight)}")
    if any(entry.claims < 0 for entry in state.flight.values()):
        broken("crash count", f"{job}: a claim was handed back twice")
    finished = [index for index in range(state.released) if index not in state.flight]
    missing = [index for index in finished if (job, index) not in outcomes]
    if missing:
        broken("1 one outcome", f"{job}: counted and not stored: {missing}")
    stored = [outcomes[job, index] for index in finished]
    words = [outcome.status for outcome in stored]
    if (words.count("done"), words.count("failed")) != (state.done, state.failed):
        broken("2 counters", f"{job}: stored {words}, counted {state.done} done, {state.failed} failed")
    if sum(outcome.size for outcome in stored) != state.bytes:
        broken("2 counters", f"{job}: {state.bytes} bytes counted, {[outcome.size for outcome in stored]} stored")
    if state.status == "done" and (state.failed or out or state.released < state.total):
        broken("2 counters", f"{job} is done with something left")


def check_born(meta: Meta, state: State) -> None:
    """A state as it is first stored."""
    if (state.status, state.done, state.failed, state.bytes) != ("queued", 0, 0, 0) or meta.total != state.total:
        broken("course", f"{meta.job_id} begins as {state}")


def check_course(kind: str, old: State, new: State, now_ms: int, skew_ms: int) -> None:
    """Statuses, cursors and ends: old and new are a job before and after one step."""
    job = new.job_id
    if old.status in ENDED:
        kept = (old.status, old.error, old.ended_at, old.released, old.total)
        if kept != (new.status, new.error, new.ended_at, new.released, new.total):
            broken("5 terminal status", f"{job} had ended: {old} -> {new}")
        counted = (old.done, old.failed, old.bytes) != (new.done, new.failed, new.bytes)
        if counted and old.status != "cancelled":
            broken("5 terminal status", f"{job} was {old.status}, and its counters change: {old} -> {new}")
        return
    if new.status != old.status and new.status not in COURSE[old.status]:
        broken("course", f"{job}: {old.status} -> {new.status}")
    if kind == "fetch" and new.status == "cancelling":
        broken("course", f"{job} fetches, and is cancelling")
    if kind == "inference" and new.status == "cancelled" and old.status != "cancelling":
        broken("course", f"{job} is cancelled without having aborted what is in flight")
    if new.released < old.released or (new.released > old.released and old.status not in ACTIVE):
        broken("pause", f"{job} is {old.status}, and its cursor moves from {old.released} to {new.released}")
    if new.status not in ENDED or new.status == "cancelled":
        return
    if new.error == "deadline":
        if now_ms + skew_ms < new.deadline_at:
            broken("5 terminal status", f"{job} ends {new.deadline_at - now_ms} ms before its deadline")
        right = "partial" if new.done else "failed"
    else:
        if new.flight or new.released < new.total or new.error:
            broken("1 one outcome", f"{job} ends with targets left: {new}")
        right = "done" if not new.failed else "partial" if new.done else "failed"
    if new.status != right:
        broken("2 counters", f"{job} ends as {new.status}; its counters say {right}: {new}")


def left_to_do(state: State, now_ms: int, after_finish: bool) -> str | None:
    """What a state calls for whatever the clocks say. A finish that finds the window more than half empty may leave it
    to the one that emptied the half, until three quarters are."""
    if state.status == "cancelling" and all(entry.until + 10_000 < now_ms for entry in state.flight.values()):
        return "its end"
    if state.status in LIVE and state.released == state.total and not state.flight:
        return "its end"
    room = state.window - len(state.flight)
    half = (state.window + 1) // 2
    mine = room == half or (room > half and not after_finish) or 4 * room >= 3 * state.window
    if state.status in ACTIVE and state.released < state.total and mine:
        return "more targets"
    if state.status == "pausing" and all(entry.until + 10_000 < now_ms for entry in state.flight.values()):
        return "the end of its pause"
    return None
