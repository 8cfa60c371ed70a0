"""Bring a job forward by what its state calls for; everything that touches a job ends in `advance`."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence

from sift import metrics
from sift.assembly import AssemblyMessage
from sift.blobs.ports import Blobs
from sift.clock import CLOCK_MARGIN_MS, Clock, rfc3339
from sift.errors import Unavailable
from sift.events.ports import JOB_ENDED, Bus
from sift.jobs import ENDED, SEGMENT, Meta, Pause, Release, Settle, State, Status, counts, next_step
from sift.messages import Message, RequestMessage, TargetMessage
from sift.queue.ports import Queue, Sender
from sift.services.notices import Notices
from sift.services.segments import read_segment
from sift.specs import AnySpec, Spec
from sift.store.ports import Store

_log = logging.getLogger(__name__)


def quiet_since(now_ms: int) -> int:
    """What goes into an entry that nobody holds: a margin ago, so that a slower clock may claim it too."""
    return now_ms - CLOCK_MARGIN_MS


class Advancer:
    """It is level-triggered: it looks at the state alone, so calling it once more, or late, does no harm."""

    def __init__(
        self,
        store: Store,
        queue: Sender,
        blobs: Blobs,
        bus: Bus,
        clock: Clock,
        notices: Notices | None = None,
        *,
        assembly: Queue,
    ) -> None:
        #: None where no job has a webhook.
        self._notices = notices
        self._store = store
        self._queue = queue
        self._blobs = blobs
        self._bus = bus
        self._assembly = assembly
        self._clock = clock
        #: Cursors that this process is moving right now: a second try of the same one would only be refused.
        self._releasing: set[tuple[str, int]] = set()

    async def advance(self, job_id: str, state: State | None = None, *, after_finish: bool = False) -> None:
        """Do what the state calls for until it calls for nothing. `state`: as just read or returned by a change;
        `after_finish`: that change was the finish of a target (see `next_step`)."""
        if state is None:
            state = await self._store.get_state(job_id)
        while state is not None:
            step = next_step(state, self._clock.now_ms(), after_finish=after_finish)
            match step:
                case None:
                    return
                case Settle(status, error):
                    state = await self.settle(state, status, error)
                case Pause():
                    state = await self._end_pause(state)
                case Release():
                    state = await self._release(job_id, step)

    async def settle(self, seen: State, status: Status, error: str | None = None) -> State | None:
        """End the job and announce it. Returns None when it is over, else the state that refused the end."""
        job = await self._store.get_job(seen.job_id)
        if job is None:
            return None
        meta, now = job[0], self._clock.now_ms()
        expires_at = now // 1000 + meta.ttl_seconds if meta.ttl_seconds else None
        changed = await self._store.settle(meta, seen, status, error, now, expires_at)
        if not changed.ok:
            return changed.state
        metrics.add(metrics.JOBS_ENDED, label=status)
        metrics.add(metrics.JOB_TIME, (now - meta.created_at) / 1000)
        try:
            await self.announce(seen.job_id)
        except Unavailable as error_:
            ids = {"job_id": seen.job_id}
            _log.warning("the end of a job is announced by the sweeper: %s", error_.detail, extra=ids)
        return None

    async def announce(self, job_id: str) -> bool:
        """Ask for the job's results file, publish its end, let go of its content hash if it has no result, take it off
        the outbox.

        False when the job has not ended. It may publish more than once, and never not at all.
        """
        job = await self._store.get_job(job_id)
        if job is None:
            return False
        meta, state = job
        if state.status not in ENDED:
            return False
        if not await self._assembly.send([AssemblyMessage(job_id)]):
            raise Unavailable("The queue of the results files did not take the message.")
        await self._bus.publish(JOB_ENDED, ended_event(meta, state))
        if meta.webhook is not None:
            if self._notices is None:
                raise Unavailable("There is no queue for the notices of a job with a webhook.")
            await self._notices.ended(meta, state)  # before it leaves the outbox: at least once
        if state.status in {"failed", "cancelled"} and meta.idempotency and not meta.explicit_key:
            await self._store.drop_idempotency(meta.idempotency, job_id)
        await self._store.leave_outbox(meta.shard, job_id)
        return True

    async def send(self, job_id: str, indexes: Sequence[int]) -> None:
        """Put targets that are in flight on the queue. What fails to get there is sent again by the sweeper."""
        try:
            messages = []
            for number in sorted({index // SEGMENT for index in indexes}):
                specs = await read_segment(self._store, self._blobs, job_id, number)
                for index in indexes:
                    if index // SEGMENT == number:
                        messages.append(target_message(job_id, index, specs[index % SEGMENT]))
            accepted = await self._queue.send(messages)
        except Unavailable as error:
            _log.warning("%d targets wait for the sweeper: %s", len(indexes), error.detail, extra={"job_id": job_id})
        else:
            if accepted < len(messages):
                left = len(messages) - accepted
                _log.warning("%d targets wait for the sweeper", left, extra={"job_id": job_id})

    async def _end_pause(self, state: State) -> State | None:
        if state.pausing_at is None:  # `pausing` is only ever written together with its time
            raise AssertionError(f"{state.job_id} is pausing since never")
        changed = await self._store.end_pause(state.job_id, state.pausing_at)
        return None if changed.ok else changed.state

    async def _release(self, job_id: str, step: Release) -> State | None:
        cursor = (job_id, step.first)
        if cursor in self._releasing:
            return None  # whoever moves it goes on with the state that it gets
        self._releasing.add(cursor)
        try:
            # A value of my own: by it a repeated release knows itself from that of another process.
            until = quiet_since(self._clock.now_ms()) - random.randrange(1000)  # noqa: S311 (tells releases apart)
            changed = await self._store.release(job_id, step.first, step.count, until)
        finally:
            self._releasing.discard(cursor)
        mine = range(step.first, step.first + step.count)
        state = changed.state
        lost_answer = (
            not changed.ok
            and changed.repeated
            and state is not None
            and state.released == mine.stop
            and all(i in state.flight and state.flight[i].until == until for i in mine)
        )
        if changed.ok or lost_answer:
            await self.send(job_id, mine)
        return state


def target_message(job_id: str, index: int, spec: AnySpec) -> Message:
    """The message of one target."""
    if not isinstance(spec, Spec):
        return RequestMessage(job_id, index, spec.path, spec.model, spec.body, spec.blob, spec.label, spec.attempts)
    return TargetMessage(job_id, index, spec.url, spec.options, spec.label, spec.attempts, pace=spec.pace)


def ended_event(meta: Meta, state: State) -> dict[str, object]:
    """The detail of `Sift Job Ended`."""
    ended_at = state.ended_at or 0
    return {
        "job_id": meta.job_id,
        "kind": meta.kind,
        "tenant": meta.identity.get("tenant"),
        "actor": meta.identity.get("actor"),
        "status": state.status,
        "error": state.error,
        "counts": counts(state, ended_at),
        "bytes": state.bytes,
        "created_at": rfc3339(meta.created_at),
        "ended_at": rfc3339(ended_at),
    }
