"""What the services need of the table; every change is one conditional write.

A change answers `Changed`: `ok`, and the state as it is after the change, or, when its condition did not hold, as
it was found (None: there is no such job). Every method raises Unavailable when the table does not answer.
Times are milliseconds unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from sift.assembly import Assembly
    from sift.identity import KeyRecord
    from sift.jobs import Flight, Meta, State, Status
    from sift.pacing import Claim, Pace
    from sift.specs import AnySpec
    from sift.webhooks import Delivery, Secrets


@dataclass(frozen=True, slots=True)
class Changed:
    """The answer to a conditional change. `repeated`: the request may have been sent before, its answer lost, so
    that a refusal may be owed to this very change."""

    ok: bool
    state: State | None
    repeated: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Idempotency:
    """An idempotency record: which job it stands for, and the hash of the work it was made with."""

    key: str
    job_id: str
    work: str
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class Segment:
    """Up to 100 targets of a job: inline, or the key of the blob that holds them."""

    number: int
    specs: Sequence[AnySpec] = ()
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished target. `content` (bytes, inline) or `blob` (a key); `size` is the content's length in bytes.
    `document` is the JSON-ready rest: url (or path and model), id, media_type, chars, meta, error, attempts,
    finished_at."""

    index: int
    lease: int
    status: Literal["done", "failed"]
    size: int
    document: Mapping[str, Any]
    content: bytes | None = None
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Submission:
    """All that one commit writes. `segments` is empty when they were written ahead of it."""

    meta: Meta
    state: State
    idempotency: Idempotency | None
    caller_cap: int
    shard_cap: int
    segments: Sequence[Segment] = ()
    #: The job of a record that no longer stands (expired, or ended without a result): it may be replaced.
    stale_job: str | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """The job is in the table."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Another submission holds the idempotency record."""

    record: Idempotency


@dataclass(frozen=True, slots=True)
class CapReached:
    """The caller's cap, or that of the shard, is full."""

    cap: Literal["caller", "shard"]


CommitResult = Committed | Duplicate | CapReached


class Store(Protocol):
    """The table."""

    # submit
    async def get_idempotency(self, key: str) -> Idempotency | None: ...

    async def count_jobs(self, caller: str, now_ms: int, enough: int) -> int:
        """How many jobs of the caller are retained; it stops counting at `enough`."""
        ...

    async def put_segments(self, job_id: str, segments: Sequence[Segment], expires_at: int | None) -> None: ...

    async def commit(self, submission: Submission, now_ms: int) -> CommitResult:
        """Everything of the submission in one transaction, or nothing. Repeating it after a lost answer is safe."""
        ...

    # read
    async def get_job(self, job_id: str) -> tuple[Meta, State] | None:
        """Meta and state in one read."""
        ...

    async def get_jobs(self, job_ids: Sequence[str]) -> Sequence[tuple[Meta, State]]:
        """Those of these jobs that exist, in the same order."""
        ...

    async def get_meta(self, job_id: str) -> Meta | None: ...

    async def get_state(self, job_id: str) -> State | None: ...

    async def get_segment(self, job_id: str, number: int) -> Segment | None: ...

    async def get_segment_outcomes(
        self, job_id: str, number: int, first: int, last: int, *, content: bool = True
    ) -> Mapping[int, Outcome]:
        """The outcomes of one segment with `first <= index <= last`; without `content`, none has its inline content."""
        ...

    async def list_jobs(
        self, caller: str, now_ms: int, before: str | None, limit: int
    ) -> tuple[Sequence[str], str | None]:
        """Ids of the caller's retained jobs, newest first, older than `before`, and where to go on."""
        ...

    async def list_all_jobs(
        self, tenant: str | None, now_ms: int, before: str | None, limit: int
    ) -> tuple[Sequence[str], str | None]:
        """As `list_jobs`, of every caller, or of those of one tenant: then fewer than `limit` may be found with more
        to come. Jobs that have ended may be listed longer than they are kept."""
        ...

    # one target
    async def claim(self, job_id: str, index: int, lease: int, now_ms: int) -> Changed:
        """Take the target until `lease` when nobody holds it; the job becomes `running`."""
        ...

    async def put_outcome(self, job_id: str, outcome: Outcome, expires_at: int | None) -> bool:
        """Store the outcome unless a later lease has stored one; False when it has."""
        ...

    async def finish(
        self, job_id: str, index: int, lease: int, status: Literal["done", "failed"], size: int
    ) -> Changed:
        """Count the target and take it out of the flight, when the lease is still mine and the job still counts."""
        ...

    async def hand_back(self, job_id: str, index: int, lease: int, until: int, busy_since: int | None) -> Changed:
        """Give my lease up without charging the claim. With `busy_since`, nobody may claim the target before `until`,
        and earlier claims are no longer charged either: a target without claims holds no lease."""
        ...

    async def abandon(self, job_id: str, index: int, lease: int, until: int) -> Changed:
        """Give my lease up and leave the claim charged, as if its worker had died; `until` has passed."""
        ...

    # the window
    async def release(self, job_id: str, first: int, count: int, until: int) -> Changed: ...

    async def touch(self, job_id: str, entries: Mapping[int, Flight], until: int) -> Changed:
        """Set these entries' `until`, when each is still what it was."""
        ...

    # the job
    async def pause(self, job_id: str, status: Literal["pausing", "paused"], now_ms: int) -> Changed:
        """From `running` to `pausing`, or from `queued` to `paused`."""
        ...

    async def end_pause(self, job_id: str, pausing_at: int) -> Changed:
        """`pausing` becomes `paused`, when it is the same pause."""
        ...

    async def resume(self, job_id: str) -> Changed:
        """`paused` becomes `queued`."""
        ...

    async def cancel(self, job_id: str) -> Changed:
        """Any live job becomes `cancelling`."""
        ...

    async def settle(
        self, meta: Meta, seen: State, status: Status, error: str | None, now_ms: int, expires_at: int | None
    ) -> Changed:
        """The end, in one transaction: state, both caps, outbox. Its condition is what `seen` was computed from."""
        ...

    # after the end, and the sweeper
    async def drop_idempotency(self, key: str, job_id: str) -> None:
        """Remove the record if it is the job's own."""
        ...

    async def used_shards(self, count: int) -> Sequence[int]:
        """Which of the first `count` shards hold any job: live, to be announced or to be removed. One read of them all,
        which may miss what was written just before."""
        ...

    async def live_jobs(self, shard: int) -> Sequence[str]: ...

    async def outbox(self, shard: int) -> Sequence[str]: ...

    async def leave_outbox(self, shard: int, job_id: str) -> None: ...

    async def hide(self, meta: Meta, now_ms: int) -> Changed:
        """An ended job is expired from now on, off its caller's list, and up for removal, in one transaction."""
        ...

    async def removals(self, shard: int) -> Sequence[str]:
        """Jobs that are up for removal."""
        ...

    async def remove_segment(self, job_id: str, number: int) -> None:
        """Delete what one segment holds."""
        ...

    async def remove_job(self, job_id: str) -> None:
        """Delete the job's own items."""
        ...

    async def leave_removals(self, shard: int, job_id: str) -> None: ...

    async def caller_live(self, caller: str) -> Sequence[str]:
        """Ids of the jobs that hold a slot of the caller."""
        ...

    async def forget_live(self, job_id: str, *, caller: str | None = None, shard: int | None = None) -> None:
        """Free a slot of a job whose items are gone; never called for a live one."""
        ...

    # results files
    async def get_assembly(self, job_id: str) -> Assembly | None: ...

    async def put_assembly(self, assembly: Assembly) -> bool:
        """Store it in the place of the revision before its own; revision 0 where there is none. False when another
        change came first."""
        ...

    async def remove_assembly(self, job_id: str) -> None: ...

    # hosts
    async def get_pace(self, host: str) -> Pace | None: ...

    async def claim_tickets(self, host: str, claim: Claim) -> tuple[bool, Pace | None]:
        """Take tickets; whether it was done, and the item as it is then, or as it was found (None: there is none)."""
        ...

    async def slow_host(self, host: str, after: int) -> None:
        """Nobody asks the host before this time; an earlier one changes nothing."""
        ...

    async def hold_lane(self, host: str, lane: int, until: int) -> None: ...

    async def free_lane(self, host: str, lane: int, until: int) -> None:
        """End a hold, if it is the one that was set with this time."""
        ...

    # webhooks
    async def note_delivery(self, job_id: str, delivery: Delivery, expires_at: int | None) -> None:
        """Say how the job's posts go; `failed` stays."""
        ...

    async def get_deliveries(self, job_ids: Sequence[str]) -> Mapping[str, Delivery]:
        """How the posts of these jobs go, where anything has been said of it."""
        ...

    async def get_secrets(self, caller: str) -> Secrets | None: ...

    async def put_secrets(self, caller: str, secrets: Secrets, seen: Secrets | None) -> bool:
        """Store them when those that are there are still the ones that were seen; else False."""
        ...

    # keys
    async def get_key(self, key_id: str) -> KeyRecord | None: ...

    async def put_key(self, record: KeyRecord) -> None:
        """Store a key and list it."""
        ...

    async def list_keys(self) -> Sequence[KeyRecord]:
        """Every key, by its id, revoked ones included."""
        ...

    async def revoke_key(self, key_id: str, at: int) -> KeyRecord | None:
        """The key as it is revoked (at this time in seconds, or before); None: there is no such key."""
        ...
