"""Bring every live job on without any message or request: the repair for whatever was lost in between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sift import metrics
from sift.clock import Clock
from sift.errors import DataUnreadable, Unavailable
from sift.jobs import ACTIVE, ENDED, Flight, Kind, State
from sift.queue.ports import Queue
from sift.services.advance import Advancer, quiet_since
from sift.services.purge import Purger
from sift.services.terms import MOST_SHARDS
from sift.store.ports import Store

#: A target that was never claimed is sent again after this, if the queue shows no waiting message (ms); a request whose
#: worker died, after this from the end of its lease ...
QUIET_MS = 3 * 60_000
#: ... and after this whatever the queue shows: another job's messages may hide that its own is lost (ms).
LOST_MS = 15 * 60_000
#: Jobs looked at side by side.
AT_ONCE = 8
#: Seconds of the function's time that are left to end in good order.
RESERVE_SECONDS = 10.0

_log = logging.getLogger(__name__)


@dataclass
class Report:
    """What a sweep did: jobs looked at and their running targets, targets sent again, jobs found ended, ends
    announced, deleted jobs removed for good, jobs it failed on."""

    live: int = 0
    running: int = 0
    resent: int = 0
    ended: int = 0
    announced: int = 0
    removed: int = 0
    failed: list[str] = field(default_factory=list)


class Sweeper:
    """`queue` is that of fetch jobs, and `visibility_seconds` its: a message of a worker that died comes back by itself
    within it. `others` are the queues of the other kinds of job."""

    def __init__(
        self,
        store: Store,
        queue: Queue,
        clock: Clock,
        advancer: Advancer,
        purger: Purger,
        *,
        visibility_seconds: int,
        others: Mapping[Kind, Queue] | None = None,
    ) -> None:
        self._store = store
        self._queues: Mapping[Kind, Queue] = {"fetch": queue, **(others or {})}
        self._clock = clock
        self._advancer = advancer
        self._purger = purger
        self._visibility_ms = visibility_seconds * 1000

    async def sweep(self, seconds_left: Callable[[], float]) -> Report:
        """One walk over all live jobs and the outbox. A job that fails does not keep it from the next."""
        report = Report()
        shards = await self._store.used_shards(MOST_SHARDS)
        try:
            return await self._walk(shards, report, seconds_left)
        finally:
            metrics.add(metrics.LIVE_JOBS, report.live)
            metrics.add(metrics.TARGETS_RUNNING, report.running)
            for repair in ("resent", "ended", "announced"):
                metrics.add(metrics.REPAIRS, getattr(report, repair), repair)

    async def _walk(self, shards: Sequence[int], report: Report, seconds_left: Callable[[], float]) -> Report:
        for shard in shards:
            jobs = await self._store.live_jobs(shard)
            # Not always the same ones first: they are those that come last when the time does not suffice for all.
            first_one = self._clock.now_ms() // 60_000 % max(1, len(jobs))
            jobs = [*jobs[first_one:], *jobs[:first_one]]
            report.live += len(jobs)
            for first in range(0, len(jobs), AT_ONCE):
                if seconds_left() < RESERVE_SECONDS:
                    _log.warning("out of time: the next sweep goes on")
                    return report
                some = jobs[first : first + AT_ONCE]
                await asyncio.gather(*(self._tend(shard, job_id, report) for job_id in some))
            for job_id in await self._store.outbox(shard):
                await self._announce(shard, job_id, report)
            await self._remove(shard, seconds_left, report)
        return report

    async def _remove(self, shard: int, seconds_left: Callable[[], float], report: Report) -> None:
        """Remove deleted jobs, once their end is announced: the announcement reads them."""
        removals = await self._store.removals(shard)
        waiting = set(await self._store.outbox(shard)) if removals else set()
        for job_id in removals:
            if job_id in waiting:
                continue
            try:
                report.removed += await self._purger.purge(shard, job_id, seconds_left, RESERVE_SECONDS)
            except (Unavailable, DataUnreadable) as error:
                _log.warning("a job is removed by the next sweep: %s", error.detail, extra={"job_id": job_id})
                report.failed.append(job_id)
            except Exception:  # noqa: BLE001 - see _unforeseen
                self._unforeseen(job_id, report)

    async def _tend(self, shard: int, job_id: str, report: Report) -> None:
        try:
            job = await self._store.get_job(job_id)
            if job is None:
                _log.error("a job is live, and its items are gone: its slot is freed", extra={"job_id": job_id})
                await self._store.forget_live(job_id, shard=shard)
                return
            meta, state = job
            if state.status in ENDED:
                await self._store.forget_live(job_id, caller=meta.caller, shard=shard)
                report.ended += 1
                return
            report.running += state.running(self._clock.now_ms())
            await self._advancer.advance(job_id, state)
            resent = await self._resend(meta.kind, state)  # first, as others add to the report while this one waits
            report.resent += resent
        except (Unavailable, DataUnreadable) as error:
            _log.warning("a job waits for the next sweep: %s", error.detail, extra={"job_id": job_id})
            report.failed.append(job_id)
        except Exception:  # noqa: BLE001 - see _unforeseen
            self._unforeseen(job_id, report)

    async def _announce(self, shard: int, job_id: str, report: Report) -> None:
        try:
            if await self._advancer.announce(job_id):
                report.announced += 1
            else:
                await self._store.leave_outbox(shard, job_id)
        except (Unavailable, DataUnreadable) as error:
            _log.warning("the end of a job waits for the next sweep: %s", error.detail, extra={"job_id": job_id})
            report.failed.append(job_id)
        except Exception:  # noqa: BLE001 - see _unforeseen
            self._unforeseen(job_id, report)

    def _unforeseen(self, job_id: str, report: Report) -> None:
        """Whatever is wrong with one job must not keep the sweep from all others, every minute anew."""
        _log.exception("a job can't be swept", extra={"job_id": job_id})
        report.failed.append(job_id)

    async def _resend(self, kind: Kind, state: State) -> int:
        """Send again what has been quiet for too long; at most once per period, since it is touched first."""
        if state.status not in ACTIVE:
            return 0
        stale = await self._stale(kind, state)
        if not stale:
            return 0
        until = quiet_since(self._clock.now_ms())
        if not (await self._store.touch(state.job_id, stale, until)).ok:
            return 0  # something moved: it is alive, and the next sweep looks again
        _log.warning("%d targets are sent again", len(stale), extra={"job_id": state.job_id})
        await self._advancer.send(state.job_id, sorted(stale))
        return len(stale)

    async def _stale(self, kind: Kind, state: State) -> dict[int, Flight]:
        now = self._clock.now_ms()
        # The message of a request is hidden for as long as the longest request takes, which is too long to wait for.
        died_ms = self._visibility_ms if kind == "fetch" else QUIET_MS
        quiet = {index: (now - entry.until, entry) for index, entry in state.flight.items()}
        stale: dict[int, Flight] = {}
        waiting: dict[int, Flight] = {}
        for index, (age, entry) in quiet.items():
            if age >= LOST_MS or (entry.claims and age >= died_ms):
                stale[index] = entry
            elif not entry.claims and age >= QUIET_MS:
                waiting[index] = entry
        if waiting and await self._queues[kind].visible() == 0:
            stale |= waiting
        return stale
