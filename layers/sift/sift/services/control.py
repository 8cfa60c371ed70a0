"""Steer a job that is under way, and forget one that has ended."""

from __future__ import annotations

from typing import Literal, NoReturn

from sift.clock import Clock
from sift.errors import Conflict, Unavailable
from sift.identity import Identity
from sift.jobs import ENDED, LIVE, Meta, State
from sift.services.advance import Advancer, quiet_since
from sift.services.read import Reader
from sift.store.ports import Store

#: How often a change is tried again because the job moved in between.
TRIES = 10


class Controller:
    """Changes a job's course on behalf of its caller. Every method raises NotFound for what is not the caller's,
    and Conflict where the state does not allow it; doing the same thing again changes nothing."""

    def __init__(self, reader: Reader, advancer: Advancer, store: Store, clock: Clock) -> None:
        self._reader = reader
        self._advancer = advancer
        self._store = store
        self._clock = clock

    async def cancel(self, identity: Identity, job_id: str) -> tuple[Meta, State]:
        """The job, `cancelled`; or `cancelling`, until its requests in flight are aborted. A fetch in flight may still
        end; its outcome is kept and counted."""
        meta, state = await self._reader.job(identity, job_id)
        if state.status in LIVE:
            if meta.kind == "inference":
                changed = await self._store.cancel(job_id)
                await self._advancer.advance(job_id, changed.state)
            else:
                await self._advancer.settle(state, "cancelled")
        meta, state = await self._reader.job(identity, job_id)
        if state.status not in {"cancelling", "cancelled"}:
            _refuse(state, "cancelled")
        return meta, state

    async def pause(self, identity: Identity, job_id: str) -> tuple[Meta, State]:
        """The job, `paused`, or `pausing` until the last lease ends. Its deadline runs on."""
        for _ in range(TRIES):
            meta, state = await self._reader.job(identity, job_id)
            if state.status in {"pausing", "paused"}:
                return meta, state
            if state.status not in {"queued", "running"}:
                _refuse(state, "paused")
            to: Literal["paused", "pausing"] = "paused" if state.status == "queued" else "pausing"
            changed = await self._store.pause(job_id, to, self._clock.now_ms())
            if changed.ok:
                await self._advancer.advance(job_id, changed.state)
                return await self._reader.job(identity, job_id)
        raise Unavailable(f"{job_id} moved on every try to pause it")

    async def resume(self, identity: Identity, job_id: str) -> tuple[Meta, State]:
        """The job, `queued` again: what was out is sent again, and the window topped up."""
        _, state = await self._reader.job(identity, job_id)
        if state.status != "paused":
            _refuse(state, "resumed")
        changed = await self._store.resume(job_id)
        state = changed.state or state
        if not changed.ok and state.status not in {"queued", "running"}:
            _refuse(state, "resumed")
        # Refused, but it runs: somebody else resumed it, or the answer to this very change was lost.
        await self._resend(job_id, state)
        await self._advancer.advance(job_id)
        return await self._reader.job(identity, job_id)

    async def delete(self, identity: Identity, job_id: str) -> None:
        """Hide an ended job at once; what it stored is removed in steps, by the sweeper."""
        meta, state = await self._reader.job(identity, job_id)
        if state.status not in ENDED:
            _refuse(state, "deleted", "Cancel it first.")
        if meta.idempotency:
            await self._store.drop_idempotency(meta.idempotency, job_id)
        await self._store.hide(meta, self._clock.now_ms())

    async def _resend(self, job_id: str, state: State) -> None:
        """Put what is out on the queue again: its messages were taken off while the job was paused."""
        now = self._clock.now_ms()
        idle = {index: entry for index, entry in state.flight.items() if entry.until <= now}
        waiting = {index for index, entry in state.flight.items() if entry.until > now and not entry.claims}
        if idle:
            await self._store.touch(job_id, idle, quiet_since(now))
        if idle or waiting:
            await self._advancer.send(job_id, sorted({*idle, *waiting}))


def _refuse(state: State, what: str, hint: str = "Read the job again for its state.") -> NoReturn:
    raise Conflict("invalid_state", f"The job is {state.status}; it can't be {what}.", hint)
