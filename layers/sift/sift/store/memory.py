"""The table in memory: the same rules as on DynamoDB, for tests and simulations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from sift.jobs import ACTIVE, COUNTING, ENDED, LIVE, SEGMENT, Flight, Meta, State, Status
from sift.store.memory_records import MemoryRecords
from sift.store.ports import (
    CapReached,
    Changed,
    CommitResult,
    Committed,
    Duplicate,
    Idempotency,
    Outcome,
    Segment,
    Submission,
)


class MemoryStore(MemoryRecords):
    """Every method is atomic: none awaits while it changes something."""

    def __init__(self) -> None:
        super().__init__()
        self.idempotency: dict[str, Idempotency] = {}
        self.callers: dict[str, set[str]] = {}
        self.live: dict[int, set[str]] = {}
        self.outboxes: dict[int, set[str]] = {}
        self.removing: dict[int, set[str]] = {}
        self.caller_jobs: dict[str, dict[str, int | None]] = {}
        self.all_jobs: dict[str, tuple[str, int | None]] = {}
        self.metas: dict[str, Meta] = {}
        self.states: dict[str, State] = {}
        self.segments: dict[tuple[str, int], Segment] = {}
        self.outcomes: dict[tuple[str, int], Outcome] = {}

    # submit

    async def get_idempotency(self, key: str) -> Idempotency | None:
        return self.idempotency.get(key)

    async def count_jobs(self, caller: str, now_ms: int, enough: int) -> int:
        return min(enough, len(self._retained(caller, now_ms)))

    async def put_segments(self, job_id: str, segments: Sequence[Segment], expires_at: int | None) -> None:
        for segment in segments:
            self.segments[job_id, segment.number] = segment

    async def commit(self, submission: Submission, now_ms: int) -> CommitResult:
        meta, record = submission.meta, submission.idempotency
        if record is not None and (held := self.idempotency.get(record.key)) is not None:
            if held.job_id == meta.job_id:
                return Committed()
            expired = held.expires_at is not None and held.expires_at * 1000 <= now_ms
            if not expired and held.job_id != submission.stale_job:
                return Duplicate(held)
        if meta.job_id in self.metas:
            return Committed()
        if len(self.callers.get(meta.caller, ())) >= submission.caller_cap:
            return CapReached("caller")
        if len(self.live.get(meta.shard, ())) >= submission.shard_cap:
            return CapReached("shard")
        if record is not None:
            self.idempotency[record.key] = record
        self.callers.setdefault(meta.caller, set()).add(meta.job_id)
        self.live.setdefault(meta.shard, set()).add(meta.job_id)
        self.metas[meta.job_id] = meta
        self.states[meta.job_id] = submission.state
        self.caller_jobs.setdefault(meta.caller, {})[meta.job_id] = meta.expires_at
        self.all_jobs[meta.job_id] = meta.caller.partition("/")[0], meta.expires_at
        for segment in submission.segments:
            self.segments[meta.job_id, segment.number] = segment
        return Committed()

    # read

    async def get_job(self, job_id: str) -> tuple[Meta, State] | None:
        if job_id not in self.metas or job_id not in self.states:
            return None
        return self.metas[job_id], self.states[job_id]

    async def get_jobs(self, job_ids: Sequence[str]) -> Sequence[tuple[Meta, State]]:
        return [(self.metas[i], self.states[i]) for i in job_ids if i in self.metas and i in self.states]

    async def get_meta(self, job_id: str) -> Meta | None:
        return self.metas.get(job_id)

    async def get_state(self, job_id: str) -> State | None:
        return self.states.get(job_id)

    async def get_segment(self, job_id: str, number: int) -> Segment | None:
        return self.segments.get((job_id, number))

    async def get_segment_outcomes(
        self, job_id: str, number: int, first: int, last: int, *, content: bool = True
    ) -> Mapping[int, Outcome]:
        within = range(max(first, number * SEGMENT), min(last, number * SEGMENT + SEGMENT - 1) + 1)
        found = {index: self.outcomes[job_id, index] for index in within if (job_id, index) in self.outcomes}
        return found if content else {index: replace(outcome, content=None) for index, outcome in found.items()}

    async def list_jobs(
        self, caller: str, now_ms: int, before: str | None, limit: int
    ) -> tuple[Sequence[str], str | None]:
        return _page(self._retained(caller, now_ms), before, limit)

    async def list_all_jobs(
        self, tenant: str | None, now_ms: int, before: str | None, limit: int
    ) -> tuple[Sequence[str], str | None]:
        kept = [job_id for job_id, (_, end) in self.all_jobs.items() if end is None or end > now_ms // 1000]
        found, more = _page(kept, before, limit)
        return [job_id for job_id in found if tenant in {None, self.all_jobs[job_id][0]}], more

    def _retained(self, caller: str, now_ms: int) -> list[str]:
        jobs = self.caller_jobs.get(caller, {})
        return [job_id for job_id, end in jobs.items() if end is None or end > now_ms // 1000]

    # one target

    async def claim(self, job_id: str, index: int, lease: int, now_ms: int) -> Changed:
        state = self.states.get(job_id)
        entry = state.flight.get(index) if state else None
        if state is None or entry is None or state.status not in ACTIVE or entry.until > now_ms:
            return Changed(False, state)
        started = now_ms if state.started_at is None else state.started_at
        mine = replace(entry, until=lease, claims=entry.claims + 1)
        return self._set(state, status="running", started_at=started, flight={**state.flight, index: mine})

    async def put_outcome(self, job_id: str, outcome: Outcome, expires_at: int | None) -> bool:
        stored = self.outcomes.get((job_id, outcome.index))
        if stored is not None and stored.lease > outcome.lease:
            return False
        self.outcomes[job_id, outcome.index] = outcome
        return True

    async def finish(
        self, job_id: str, index: int, lease: int, status: Literal["done", "failed"], size: int
    ) -> Changed:
        state = self._held(job_id, index, lease)
        if state is None or state.status not in COUNTING:
            return Changed(False, self.states.get(job_id))
        flight = {other: entry for other, entry in state.flight.items() if other != index}
        total = {status: getattr(state, status) + 1, "bytes": state.bytes + size}
        return self._set(state, flight=flight, **total)

    async def hand_back(self, job_id: str, index: int, lease: int, until: int, busy_since: int | None) -> Changed:
        state = self._held(job_id, index, lease)
        if state is None:
            return Changed(False, self.states.get(job_id))
        entry = state.flight[index]
        since = busy_since if entry.busy_since is None else entry.busy_since
        back = Flight(until, entry.claims - 1 if busy_since is None else 0, since)
        return self._set(state, flight={**state.flight, index: back})

    async def abandon(self, job_id: str, index: int, lease: int, until: int) -> Changed:
        state = self._held(job_id, index, lease)
        if state is None:
            return Changed(False, self.states.get(job_id))
        left = replace(state.flight[index], until=until)
        return self._set(state, flight={**state.flight, index: left})

    def _held(self, job_id: str, index: int, lease: int) -> State | None:
        """The state, when this lease holds the target."""
        state = self.states.get(job_id)
        entry = state.flight.get(index) if state else None
        return state if entry is not None and entry.until == lease else None

    # the window

    async def release(self, job_id: str, first: int, count: int, until: int) -> Changed:
        state = self.states.get(job_id)
        if state is None or state.status not in ACTIVE or state.released != first:
            return Changed(False, state)
        fresh = {index: Flight(until) for index in range(first, first + count)}
        return self._set(state, released=first + count, flight={**state.flight, **fresh})

    async def touch(self, job_id: str, entries: Mapping[int, Flight], until: int) -> Changed:
        state = self.states.get(job_id)
        if state is None or state.status not in ACTIVE:
            return Changed(False, state)
        for index, seen in entries.items():
            found = state.flight.get(index)
            if found is None or found.until != seen.until:
                return Changed(False, state)
        touched = {index: replace(state.flight[index], until=until) for index in entries}
        return self._set(state, flight={**state.flight, **touched})

    # the job

    async def pause(self, job_id: str, status: Literal["pausing", "paused"], now_ms: int) -> Changed:
        source = "running" if status == "pausing" else "queued"
        return self._from(job_id, source, status=status, pausing_at=now_ms)

    async def end_pause(self, job_id: str, pausing_at: int) -> Changed:
        state = self.states.get(job_id)
        if state is None or state.pausing_at != pausing_at:
            return Changed(False, state)
        return self._from(job_id, "pausing", status="paused")

    async def resume(self, job_id: str) -> Changed:
        return self._from(job_id, "paused", status="queued", pausing_at=None)

    async def cancel(self, job_id: str) -> Changed:
        state = self.states.get(job_id)
        if state is None or state.status not in LIVE:
            return Changed(False, state)
        return self._set(state, status="cancelling")

    async def settle(
        self, meta: Meta, seen: State, status: Status, error: str | None, now_ms: int, expires_at: int | None
    ) -> Changed:
        state = self.states.get(meta.job_id)
        if state is None:
            return Changed(False, None)
        if status == "cancelled":
            holds = state.status in LIVE
        else:
            holds = state.status == seen.status and state.done == seen.done
            if error is None:
                holds = holds and state.released == state.total and not state.flight
        if not holds:
            return Changed(False, state)
        self.callers.get(meta.caller, set()).discard(meta.job_id)
        self.live.get(meta.shard, set()).discard(meta.job_id)
        self.outboxes.setdefault(meta.shard, set()).add(meta.job_id)
        self.caller_jobs.setdefault(meta.caller, {})[meta.job_id] = expires_at
        self._set(state, status=status, error=error, ended_at=now_ms, expires_at=expires_at)
        return Changed(True, None)

    def _from(self, job_id: str, source: str, **changes: Any) -> Changed:
        state = self.states.get(job_id)
        if state is None or state.status != source:
            return Changed(False, state)
        return self._set(state, **changes)

    def _set(self, state: State, **changes: Any) -> Changed:
        changed = replace(state, **changes)
        self.states[state.job_id] = changed
        return Changed(True, changed)

    # after the end, and the sweeper

    async def drop_idempotency(self, key: str, job_id: str) -> None:
        held = self.idempotency.get(key)
        if held is not None and held.job_id == job_id:
            del self.idempotency[key]

    async def used_shards(self, count: int) -> Sequence[int]:
        sets = (self.live, self.outboxes, self.removing)
        return [shard for shard in range(count) if any(held.get(shard) for held in sets)]

    async def live_jobs(self, shard: int) -> Sequence[str]:
        return sorted(self.live.get(shard, ()))

    async def outbox(self, shard: int) -> Sequence[str]:
        return sorted(self.outboxes.get(shard, ()))

    async def leave_outbox(self, shard: int, job_id: str) -> None:
        self.outboxes.get(shard, set()).discard(job_id)

    async def hide(self, meta: Meta, now_ms: int) -> Changed:
        state = self.states.get(meta.job_id)
        if state is None or state.status not in ENDED:
            return Changed(False, state)
        self.removing.setdefault(meta.shard, set()).add(meta.job_id)
        self.caller_jobs.get(meta.caller, {}).pop(meta.job_id, None)
        self.all_jobs.pop(meta.job_id, None)
        self._set(state, expires_at=now_ms // 1000)
        return Changed(True, None)

    async def removals(self, shard: int) -> Sequence[str]:
        return sorted(self.removing.get(shard, ()))

    async def remove_segment(self, job_id: str, number: int) -> None:
        for key in self._segment_outcomes(job_id, number):
            del self.outcomes[key]
        self.segments.pop((job_id, number), None)

    def _segment_outcomes(self, job_id: str, number: int) -> list[tuple[str, int]]:
        return [key for key in self.outcomes if key[0] == job_id and key[1] // SEGMENT == number]

    async def remove_job(self, job_id: str) -> None:
        self.metas.pop(job_id, None)
        self.deliveries.pop(job_id, None)
        self.states.pop(job_id, None)
        self.assemblies.pop(job_id, None)

    async def leave_removals(self, shard: int, job_id: str) -> None:
        self.removing.get(shard, set()).discard(job_id)

    async def caller_live(self, caller: str) -> Sequence[str]:
        return sorted(self.callers.get(caller, ()))

    async def forget_live(self, job_id: str, *, caller: str | None = None, shard: int | None = None) -> None:
        if shard is not None:
            self.live.get(shard, set()).discard(job_id)
        if caller is not None:
            self.callers.get(caller, set()).discard(job_id)


def _page(job_ids: Iterable[str], before: str | None, limit: int) -> tuple[list[str], str | None]:
    """Newest first, from a place on."""
    older = [job_id for job_id in sorted(job_ids, reverse=True) if before is None or job_id < before]
    return older[:limit], older[limit - 1] if len(older) > limit else None
