"""The state of a job, and what is to be done about it: a cursor over its targets and a small map of what is out.

    pending   index >= released
    out       index in flight (running while its lease has not ended)
    finished  every other index below released

`done + failed + len(flight) == released <= total` holds in every state, so each repair needs this one item only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["queued", "running", "pausing", "paused", "cancelling", "done", "partial", "failed", "cancelled"]
#: What the targets of a job are: URLs to fetch, or requests to the model gateway.
Kind = Literal["fetch", "inference"]

ACTIVE: frozenset[Status] = frozenset({"queued", "running"})
LIVE: frozenset[Status] = ACTIVE | {"pausing", "paused", "cancelling"}
ENDED: frozenset[Status] = frozenset({"done", "partial", "failed", "cancelled"})
#: A late outcome still counts in these; an end that was computed from the counters must not change under them.
COUNTING: frozenset[Status] = LIVE | {"cancelled"}

MAX_WINDOW = 32
SEGMENT = 100
#: A target that was claimed this often and never finished has crashed its workers.
MAX_CLAIMS = 4


@dataclass(frozen=True, slots=True)
class Flight:
    """One target that is out. `claims`: how often it was claimed without being finished or handed back;
    `busy_since`: ms or None; `until`: ms. In the future it is the lease of a target that was claimed, and the time
    before which nobody may claim one that was not (it was busy); in the past, it is quiet since then."""

    until: int
    claims: int = 0
    busy_since: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A job's `STATE` item. All times are milliseconds, except `expires_at` in seconds (None: kept for ever)."""

    job_id: str
    status: Status
    total: int
    released: int
    window: int
    budget: int
    deadline_at: int
    expires_at: int | None
    done: int = 0
    failed: int = 0
    bytes: int = 0
    flight: Mapping[int, Flight] = field(default_factory=dict)
    started_at: int | None = None
    ended_at: int | None = None
    pausing_at: int | None = None
    error: str | None = None
    #: Which events, its end apart, go to a webhook (`sift.webhooks.mask`).
    notify: int = 0

    def expired(self, now_ms: int) -> bool:
        """Past its retention: it reads as absent, whether or not the table has removed it yet."""
        return self.expires_at is not None and self.expires_at * 1000 <= now_ms

    def running(self, now_ms: int) -> int:
        """How many targets have a lease that has not ended."""
        return sum(1 for entry in self.flight.values() if entry.claims and entry.until > now_ms)


@dataclass(frozen=True, slots=True)
class Meta:
    """A job's `META` item: what was submitted and by whom. It never changes."""

    job_id: str
    kind: Kind
    caller: str
    identity: Mapping[str, Any]
    total: int
    created_at: int
    deadline_at: int
    ttl_seconds: int
    expires_at: int | None
    shard: int
    salt: str
    options: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    #: The idempotency record that the job holds (None with `fresh`), and whether the caller chose its key.
    idempotency: str | None = None
    explicit_key: bool = False
    retry_of: str | None = None
    #: Where its events are posted: url, events, headers, metadata. The headers may be credentials.
    webhook: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """Bring the job to this end."""

    status: Status
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Every lease has ended: `pausing` becomes `paused`."""


@dataclass(frozen=True, slots=True)
class Release:
    """Send the targets `first .. first + count - 1` out."""

    first: int
    count: int


Step = Settle | Pause | Release


def end_status(state: State) -> Status:
    """What a job with these counters ends as."""
    if not state.failed:
        return "done"
    return "partial" if state.done else "failed"


def deadline_status(state: State) -> Status:
    """What a job that ran out of time ends as: it is never `done`, since some of its targets did not run."""
    return "partial" if state.done else "failed"


def next_step(state: State, now_ms: int, *, after_finish: bool = False) -> Step | None:
    """What the state calls for now, or None. It depends on nothing but the state and the time (level-triggered).

    `after_finish` is for whoever made this state by finishing a target. The finish that left the window half empty
    tops it up, and the next ones leave it to that one, whose release may be under way: trying as well would cost
    a refused write each. Once the window is three quarters empty everybody tries again.
    """
    if state.status in ENDED:
        return None
    finished = state.released == state.total and not state.flight
    if finished and state.status != "cancelling":
        return Settle(end_status(state))
    out_of_time = now_ms >= state.deadline_at
    if state.status == "cancelling":
        return Settle("cancelled") if out_of_time or not state.running(now_ms) else None
    if out_of_time:
        return Settle(deadline_status(state), "deadline")
    if state.status == "pausing":
        return None if state.running(now_ms) else Pause()
    if state.status == "paused":
        return None
    room = state.window - len(state.flight)
    left = state.total - state.released
    half = -(-state.window // 2)
    anothers = after_finish and half < room and room * 4 < state.window * 3
    if left and room >= half and not anothers:
        return Release(state.released, min(room, left))
    return None


Refusal = Literal["gone", "over", "stopped", "held"]


def claim_refusal(state: State | None, index: int, now_ms: int) -> Refusal:
    """Why a claim was refused, from the item as the refused update saw it.

    `gone`: no such job, or the target has finished · `over`: the job has ended or is ending ·
    `stopped`: it is paused · `held`: another worker's lease has not ended, or the target was busy and waits.
    """
    if state is None:
        return "gone"
    if state.status in {"pausing", "paused"}:
        return "stopped"
    if state.status not in ACTIVE:
        return "over"
    if index not in state.flight:
        return "gone"
    return "held"


def counts(state: State, now_ms: int) -> dict[str, int]:
    """Targets by status; they always add up to `total`. What an ended job never ran counts as its slots read."""
    running = state.running(now_ms) if state.status in LIVE else 0
    rest = state.total - state.done - state.failed - running
    tally = {
        "total": state.total,
        "pending": 0,
        "running": running,
        "done": state.done,
        "failed": state.failed,
    }
    tally["cancelled"] = rest if state.status == "cancelled" else 0
    if state.status in LIVE:
        tally["pending"] = rest
    elif state.status != "cancelled":
        tally["failed"] += rest
    return tally
