"""Work on a batch of targets: claim, run, finish, advance. What is run is a runner's business, one for each kind."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sift import logs, metrics
from sift.clock import CLOCK_MARGIN_MS, Clock
from sift.errors import TARGET_CODES, TargetBusy, TargetCut, TargetFailed, Unavailable
from sift.jobs import ACTIVE, MAX_CLAIMS, State, claim_refusal
from sift.messages import Message, TargetMessage, decode
from sift.queue.ports import MOST_DELAY, DeadLetters, Queue, Received
from sift.services.advance import Advancer, quiet_since
from sift.services.judge import REPEAT_SECONDS, Judge
from sift.services.notices import Notices
from sift.services.outcomes import keep_failure
from sift.services.pace import Later, Pacer
from sift.services.runner import Claimed, Runner, Stopped, crashed
from sift.store.ports import Outcome, Store

#: What storing and finishing may take after the run, in seconds.
RESERVE_SECONDS = 15.0
#: A target that is begun so much later (s) than its batch did not have the time that is its own.
LATE_SECONDS = 10.0
#: A busy target is tried again after 2 s, then ever later up to 60 s, for 10 minutes in all.
BUSY_FIRST_SECONDS = 2.0
BUSY_MOST_SECONDS = 60.0
BUSY_FOR_SECONDS = 600.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Batch:
    """What goes for all of a batch. `suspects` collects what is to run after the others; None: it is that now.
    `whole_s` is what a target has that is begun at once."""

    seconds_left: Callable[[], float]
    whole_s: float
    suspects: list[Received] | None


def busy_wait(elapsed_s: float, retry_after: float | None, jitter: float) -> float:
    """Seconds until the next try of a target that has been busy for `elapsed_s`; `jitter` is in 0..1."""
    wait = min(BUSY_MOST_SECONDS, max(BUSY_FIRST_SECONDS, elapsed_s / 2)) * (0.75 + jitter / 2)
    return max(wait, retry_after or 0.0)


class Worker:
    """Works on batches; its answers tell which messages stay on the queue, as `judge` has it."""

    def __init__(
        self,
        *,
        store: Store,
        queue: Queue,
        dead_letters: DeadLetters,
        clock: Clock,
        advancer: Advancer,
        runner: Runner,
        lease_seconds: int,
        pacer: Pacer | None = None,
        random_source: random.Random | None = None,
        notices: Notices | None = None,
    ) -> None:
        self._store = store
        self._queue = queue
        self._notices = notices
        self._clock = clock
        self._advancer = advancer
        self._runner = runner
        self._lease_ms = lease_seconds * 1000
        self._pacer = pacer
        self._random = random_source or random.Random()  # noqa: S311 (spreads load and tells leases apart)
        self.judge = Judge("a target", queue, dead_letters, lambda _: REPEAT_SECONDS * (1 + self._random.random()))

    async def run_batch(self, batch: Sequence[Received], seconds_left: Callable[[], float]) -> list[str]:
        """Work on all at once; returns the ids of the messages that are to stay on the queue.

        A target that was claimed before and never finished may have crashed its worker: it runs after the
        others, alone, so that only its own claim is charged if it does so again. Requests do so together: most
        were cut off by a gateway that restarted, and one after the other they would take hours.
        """
        suspects: list[Received] = []
        whole_s = min(self._runner.seconds, seconds_left() - RESERVE_SECONDS)
        first_pass = _Batch(seconds_left, whole_s, suspects if len(batch) > 1 else None)
        kept = await self.judge.judge_all(batch, lambda received: self._work(received, first_pass))
        second_pass = _Batch(seconds_left, whole_s, None)
        for some in [[suspect] for suspect in suspects] if self._runner.isolates else [suspects]:
            kept += await self.judge.judge_all(some, lambda received: self._work(received, second_pass))
        return kept

    async def _work(self, received: Received, batch: _Batch) -> float | None:
        message = decode(received.body)
        host = logs.host_of(message.url) if isinstance(message, TargetMessage) else None
        logs.add(job_id=message.job_id, index=message.index, host=host)
        if batch.seconds_left() < RESERVE_SECONDS * 2:
            return 0.0
        if self._pacer is not None and isinstance(message, TargetMessage):
            turn = await self._pacer.turn_of(message.url, message.slot, message.pace)
            if isinstance(turn, Later):
                await self._send_later(message, turn)
                return None
            message = replace(message, slot=turn)
        claimed = await self._claim(received, message)
        if not isinstance(claimed, Claimed):
            return claimed
        if self._clock.now_ms() >= claimed.state.deadline_at:
            await self._advancer.advance(message.job_id, claimed.state)
            return None
        if claimed.entry.claims > MAX_CLAIMS:
            return await self._run(claimed, 0.0, batch, gone=crashed())
        if claimed.entry.claims > 1 and batch.suspects is not None:
            return await self._defer(claimed, batch.suspects)
        return await self._run(claimed, min(self._runner.seconds, batch.seconds_left() - RESERVE_SECONDS), batch)

    async def _claim(self, received: Received, message: Message) -> Claimed | float | None:
        """My claim, or what becomes of the message of a refused one."""
        now = self._clock.now_ms()
        lease = now + self._lease_ms + CLOCK_MARGIN_MS + self._random.randrange(1000)
        changed = await self._store.claim(message.job_id, message.index, lease, now)
        state = changed.state
        entry = state.flight.get(message.index) if state else None
        # Refused as held by my own lease: the claim had succeeded, and its answer was lost. A refusal of a request
        # that was sent once is another's doing, whose lease happens to be the same.
        mine = entry is not None and (changed.ok or (changed.repeated and entry.until == lease))
        if state is None or entry is None or not mine:
            return await self._refused(message, state)
        if state.notify and self._notices is not None:
            await self._notices.started(state, now)
        return Claimed(received, message, lease, state, entry)

    async def _refused(self, message: Message, state: State | None) -> float | None:
        """A target that is not mine. While another holds it or it waits, this message is kept: it may be the last."""
        now = self._clock.now_ms()
        if state is None:
            return None
        if claim_refusal(state, message.index, now) == "held":
            return (state.flight[message.index].until - now) / 1000 + 1
        await self._advancer.advance(message.job_id, state)
        return None

    async def _defer(self, claimed: Claimed, suspects: list[Received]) -> float | None:
        """Give the claim back until the others of the batch are through."""
        if not await self._hand_back(claimed, quiet_since(self._clock.now_ms())):
            return await self._lost(claimed)
        suspects.append(claimed.received)
        return None

    async def _run(
        self, claimed: Claimed, seconds: float, batch: _Batch, gone: TargetFailed | None = None
    ) -> float | None:
        began = self._clock.now_ms()
        try:
            outcome = await self._runner.run(claimed, seconds, gone=gone)
        except TargetBusy as busy:
            return await self._busy(claimed, busy, seconds - (self._clock.now_ms() - began) / 1000, batch)
        except TargetCut as cut:
            return await self._cut(claimed, cut)
        except Stopped:
            return await self._stop(claimed)
        except Unavailable:
            await self._hand_back(claimed, quiet_since(self._clock.now_ms()))  # a fault of ours is not its crash
            raise
        except TargetFailed as error:
            if error.code == "timeout" and seconds < batch.whole_s - LATE_SECONDS:
                return await self._stop(claimed)  # it had less than its time, which says nothing about it
            outcome = self._failure(claimed, error)
        finally:
            metrics.add(metrics.TARGET_TIME, self._clock.now_ms() - began)
        return await self._finish(claimed, outcome)

    async def _finish(self, claimed: Claimed, outcome: Outcome) -> float | None:
        job_id, index = claimed.message.job_id, claimed.message.index
        if not await self._store.put_outcome(job_id, outcome, claimed.state.expires_at):
            return await self._lost(claimed)
        changed = await self._store.finish(job_id, index, claimed.lease, outcome.status, outcome.size)
        if not changed.ok:
            return await self._refused(claimed.message, changed.state)
        _tell(outcome)
        if changed.state is not None and changed.state.notify and self._notices is not None:
            await self._notices.finished(changed.state, outcome)
        await self._advancer.advance(job_id, changed.state, after_finish=True)
        return None

    async def _busy(self, claimed: Claimed, busy: TargetBusy, left_s: float, batch: _Batch) -> float | None:
        now = self._clock.now_ms()
        since = claimed.entry.busy_since or now
        wait = busy_wait((now - since) / 1000, busy.retry_after, self._random.random())
        if (now - since) / 1000 + wait > BUSY_FOR_SECONDS:
            error = TargetFailed(
                "busy",
                f"{busy.detail} It was busy for too long, or asked for a wait beyond {BUSY_FOR_SECONDS:.0f} seconds.",
                busy.hint,
                status=busy.status,
            )
            return await self._run(claimed, max(0.0, left_s), batch, gone=error)
        # The wait is in the table too: a copy of the message must not cut it short.
        if not await self._hand_back(claimed, now + round(wait * 1000), since):
            return await self._lost(claimed)
        metrics.add(metrics.BUSY_RETRIES)
        return wait

    async def _cut(self, claimed: Claimed, cut: TargetCut) -> float | None:
        """Nobody knows how much of it was worked on: the claim stays charged, and after some of them it is given up."""
        if claimed.entry.claims >= MAX_CLAIMS:
            return await self._finish(claimed, self._failure(claimed, TargetFailed(cut.code, cut.detail, cut.hint)))
        job_id, index = claimed.message.job_id, claimed.message.index
        changed = await self._store.abandon(job_id, index, claimed.lease, quiet_since(self._clock.now_ms()))
        if not changed.ok or changed.state is None:
            return await self._lost(claimed)
        return await self._left(changed.state, busy_wait(claimed.entry.claims * 2.0, None, self._random.random()))

    async def _stop(self, claimed: Claimed) -> float | None:
        """It was given up without an outcome: the lease goes back, so that a pause or a cancel need not wait for it."""
        message = claimed.message
        until = quiet_since(self._clock.now_ms())
        changed = await self._store.hand_back(message.job_id, message.index, claimed.lease, until, None)
        if not changed.ok or changed.state is None:
            return await self._lost(claimed)
        return await self._left(changed.state, 0.0)

    async def _left(self, state: State, wait: float) -> float | None:
        """A target that nobody holds any more. While its job goes on, the message comes back for it; else a resume
        sends another."""
        await self._advancer.advance(state.job_id, state)
        return wait if state.status in ACTIVE else None

    async def _send_later(self, message: TargetMessage, turn: Later) -> None:
        """The message again when its turn comes, in the place of this one: nothing of the table is touched, so it
        counts neither as busy nor as a crash. One whose turn is known comes a little early, and waits for it."""
        wait = turn.wait_ms // 1000 - 1 if turn.slot else -(-turn.wait_ms // 1000)
        await self._queue.send_later(replace(message, slot=turn.slot), max(0, min(MOST_DELAY, wait)))

    async def _hand_back(self, claimed: Claimed, until: int, busy_since: int | None = None) -> bool:
        message = claimed.message
        changed = await self._store.hand_back(message.job_id, message.index, claimed.lease, until, busy_since)
        if changed.ok and changed.state is not None:
            # A pause or an inference cancel may have waited for this lease.
            await self._advancer.advance(message.job_id, changed.state)
        return changed.ok

    async def _lost(self, claimed: Claimed) -> float | None:
        """My lease is gone: what becomes of the message depends on who has the target now."""
        state = await self._store.get_state(claimed.message.job_id)
        return await self._refused(claimed.message, state)

    def _failure(self, claimed: Claimed, error: TargetFailed) -> Outcome:
        now = self._clock.now_ms()
        return keep_failure(claimed.message, claimed.lease, error, claimed.attempts, now)


def _tell(outcome: Outcome) -> None:
    """Measure and log an outcome that counts."""
    metrics.add(metrics.TARGETS_ENDED, label=outcome.status)
    if outcome.status == "done":
        metrics.add(metrics.RESULT_BYTES, outcome.size)
        _log.info("a target is done", extra={"bytes": outcome.size})
        return
    code = outcome.document["error"]["code"]
    known = code if code in TARGET_CODES else None
    metrics.add(metrics.TARGET_ERRORS, label=known)
    _log.info("a target has failed", extra={"code": known})
