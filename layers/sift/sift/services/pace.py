"""Ask no host too often: who wants to fetch takes a slot, waits for it where it is near, and holds it while slow."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from sift.clock import Clock
from sift.errors import TargetBusy, TargetFailed, Unavailable
from sift.pacing import Pace, PaceLimits, Slot, host_of, plan, slots
from sift.store.ports import Store
from sift.targets import Content

#: A slot that is as near as this (ms) is waited for in place.
NEAR_MS = 3_000
#: Where every lane is held, it is tried again after this (ms): nobody knows when a slow request ends.
HELD_MS = 3_000
#: A request that outlasts its span holds its lane by this time (ms) before the span ends, or is given up with it.
HOLD_AHEAD_MS = 500
#: A hold ends by itself after this (ms), if its process died: longer than a target may take.
HOLD_MS = 60_000
#: What a host asks for counts for everybody up to this (ms): as long as a busy target is tried.
SLOWED_MS = 600_000
#: Who waits for an answer waits for a turn up to this (ms).
PATIENCE_MS = 10_000
#: For how long (seconds) a host that does not say is left alone.
SLOWED_S = 2.0
#: Statuses with which a host asks everybody to come back later.
SLOWED_BY = frozenset({429, 503})
#: How often a ticket is asked for in a row when others are quicker; the first of them may change the spacing.
TRIES = 8
SPACING_TRIES = 3
#: How many of a line's last requests tell how slow it is, from how many on, and of how many lines that is remembered.
SAMPLES = 8
FEWEST_SAMPLES = 3
LINES = 256
#: Spans are stretched, and spacings rounded, to this (ms). Longer ones would keep turns that are taken far ahead slow
#: for minutes after the host is quick again.
LONGEST_SPAN_MS = 45_000
STEP_MS = 100

_log = logging.getLogger(__name__)


class Fetch(Protocol):
    """Fetches one URL within `deadline_s` seconds, with options of whatever kind it takes."""

    def __call__(
        self, url: str, options: Any, deadline_s: float, *, gone: TargetFailed | None = None
    ) -> Awaitable[Content]: ...


@dataclass(frozen=True, slots=True)
class Later:
    """Not now: in so many ms; with a slot, that one is kept for it."""

    wait_ms: int
    slot: Slot | None


class Pacer:
    """Paces all that this process fetches, together with all other processes on the same table. Every method but
    `running` raises Unavailable when the table does not answer. `own`: whether a host is the operator's own and goes
    unpaced. `classes`: those caller classes that have a pace of their own; a host has a line for each, `HOST#class`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: PaceLimits,
        own: Callable[[str], bool] = lambda host: False,
        classes: Mapping[str, PaceLimits] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._own = own
        self._classes = classes or {}
        self._waiting: dict[str, list[asyncio.Future[Slot | Later]]] = {}
        #: By line: how long (ms) the last requests of this process took.
        self._took: OrderedDict[str, deque[int]] = OrderedDict()

    def host_of(self, url: str) -> str | None:
        """The host that this URL is paced by; None: it is not paced."""
        host = host_of(url)
        return None if host is None or self._own(host) else host

    def line_of(self, url: str, pace: str | None) -> str | None:
        """The line in which this URL waits for its host: that of its caller class, or that of everybody."""
        host = self.host_of(url)
        return f"{host}#{pace}" if host is not None and pace in self._classes else host

    def _limits_of(self, line: str) -> PaceLimits:
        return self._classes.get(line.partition("#")[2], self._limits)

    async def turn(self, host: str, slot: Slot | None = None, near_ms: int = NEAR_MS) -> Slot | Later:
        """The slot to go in now, or how much later. `slot`: what was kept; one whose time has passed is lost, for
        others go by the times after it."""
        if slot is not None and self._clock.now_ms() > slot.at:
            slot = None
        for _ in range(TRIES):
            if slot is None:
                taken = await self._take(host)
                if isinstance(taken, Later):
                    if taken.wait_ms > 0:
                        return taken
                    continue
                slot = taken
            now = self._clock.now_ms()
            if slot.at <= now:
                return slot
            if slot.at - now > near_ms:
                return Later(slot.at - now, slot)
            await self._clock.sleep((slot.at - now) / 1000)
            # What became slow, or busy, since the slot was taken is in the table by now.
            pace = await self._store.get_pace(host) or Pace()
            if pace.after <= slot.at and not pace.held(slot.lane, slot.at):
                return slot
            slot = None
        return Later(HELD_MS, None)

    async def turn_of(self, url: str, slot: Slot | None = None, pace: str | None = None) -> Slot | Later | None:
        """As `turn`, of a URL's host by the pace of a caller class; None where that is not paced."""
        host = self.line_of(url, pace)
        return None if host is None else await self.turn(host, slot)

    async def far(self, host: str, near_ms: int) -> int:
        """How many ms away the next slot is, if that is more than `near_ms`, else 0; nothing is taken."""
        pace = await self._store.get_pace(host) or Pace()
        wait = max(pace.after, pace.next_at) - self._clock.now_ms()
        return wait if wait > near_ms else 0

    async def slow(self, host: str, wait_s: float) -> None:
        """The host asks to come back later: so does everybody."""
        after = self._clock.now_ms() + min(SLOWED_MS, round(wait_s * 1000))
        name = host.partition("#")[0]
        for line in (name, *(f"{name}#{pace}" for pace in self._classes)):
            await self._store.slow_host(line, after)

    @asynccontextmanager
    async def in_turn(self, url: str, slot: Slot, pace: str | None = None) -> AsyncIterator[None]:
        """While the request for a URL runs, as `running`; what its host asks for then goes for everybody."""
        host = self.line_of(url, pace)
        if host is None:
            yield
            return
        try:
            async with self.running(host, slot):
                yield
        except TargetBusy as busy:
            if busy.status in SLOWED_BY:
                try:
                    await self.slow(host, busy.retry_after or SLOWED_S)
                except Unavailable as error:  # it is busy all the same, and counts as that
                    _log.warning("others are not told that a host asks to come back later: %s", error.detail)
            raise

    @asynccontextmanager
    async def running(self, host: str, slot: Slot) -> AsyncIterator[None]:
        """While the request runs. One that outlasts its span holds its lane; where that can't be written down in time,
        it is given up as busy, since others will take its place."""
        span_ms = slot.span or self._limits_of(host).span_ms
        left_s = (slot.at + span_ms - self._clock.now_ms()) / 1000
        until = slot.at + span_ms + HOLD_MS
        tried = asyncio.Event()
        try:
            async with asyncio.timeout(max(0.0, left_s)) as limit:

                async def hold() -> None:
                    await asyncio.sleep(max(0.0, left_s - HOLD_AHEAD_MS / 1000))
                    tried.set()
                    await self._store.hold_lane(host, slot.lane, until)
                    limit.reschedule(None)

                holding = asyncio.create_task(hold())
                try:
                    yield
                finally:
                    holding.cancel()
                    await asyncio.gather(holding, return_exceptions=True)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TargetBusy("The site is slow, and its turn could not be kept.") from error
        finally:
            self._remember(host, self._clock.now_ms() - slot.at)
            if tried.is_set():  # whether or not its answer came
                await self._free(host, slot.lane, until)

    def _remember(self, host: str, took_ms: int) -> None:
        self._took.setdefault(host, deque(maxlen=SAMPLES)).append(took_ms)
        self._took.move_to_end(host)
        if len(self._took) > LINES:
            self._took.popitem(last=False)

    def _wanted(self, host: str, seen: Pace, limits: PaceLimits) -> int | None:
        """The spacing with which most requests end within their spans; None: as it is. It is no more than what leaves
        half of what all lanes can carry, and changes only where it makes a difference."""
        took = sorted(self._samples(host, seen))
        if len(took) < FEWEST_SAMPLES:
            return None
        slow = took[len(took) * 7 // 10]
        span = min(slow * 5 // 4 + HOLD_AHEAD_MS, 2 * sum(took) // len(took), LONGEST_SPAN_MS)
        wanted = max(limits.interval_ms, -(-span // limits.concurrency // STEP_MS) * STEP_MS)
        now = max(limits.interval_ms, seen.spacing)
        too_short = slow + HOLD_AHEAD_MS > now * limits.concurrency and wanted > now
        return wanted if too_short or wanted < now * 0.6 else None

    def _samples(self, host: str, seen: Pace) -> list[int]:
        """How long requests took: those of this process or, where it knows of few, those that hold lanes by now."""
        took = list(self._took.get(host, ()))
        now = self._clock.now_ms()
        ages = [now - until + HOLD_MS for until in seen.holds.values() if until > now]
        return took if len(took) >= FEWEST_SAMPLES else took + ages

    def _held(self, host: str, count: int, seen: Pace, limits: PaceLimits) -> list[Slot | Later]:
        """When to try again where every lane is held: as many at once as lanes may be free by then."""
        took = self._samples(host, seen)
        each = sum(took) // len(took) // limits.concurrency
        return [Later(max(HELD_MS, number * each), None) for number in range(1, count + 1)]

    async def _free(self, host: str, lane: int, until: int) -> None:
        try:
            await self._store.free_lane(host, lane, until)
        except Unavailable as error:
            _log.warning("a lane of a host is held for a minute: %s", error.detail)

    async def _take(self, host: str) -> Slot | Later:
        """A slot, or when to try again; those who want one of the same host at the same time share one write."""
        mine: asyncio.Future[Slot | Later] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(host, [])
        waiting.append(mine)
        if len(waiting) > 1:
            return await mine
        try:
            await asyncio.sleep(0)  # the others of the batch come now
            found = await self._take_some(host, waiting)
        except BaseException:
            for other in waiting[1:]:
                if not other.cancelled():
                    other.set_exception(Unavailable("A turn of the host could not be taken."))
            raise
        for other, slot in zip(waiting[1:], found[1:], strict=True):
            if not other.cancelled():
                other.set_result(slot)
        return found[0]

    async def _take_some(self, host: str, waiting: Sequence[object]) -> list[Slot | Later]:
        try:
            pace = await self._store.get_pace(host)
        finally:
            del self._waiting[host]  # who comes from now on takes another
        count, limits = len(waiting), self._limits_of(host)
        for tried in range(TRIES):
            now = self._clock.now_ms()
            seen = pace or Pace()
            if seen.after - now > NEAR_MS:
                return [Later(seen.after - now, None)] * count
            wanted = self._wanted(host, seen, limits) if tried < SPACING_TRIES else None
            claim = plan(seen, count, now, limits, wanted)
            if claim is None:
                return self._held(host, count, seen, limits)
            done, pace = await self._store.claim_tickets(host, claim)
            if done and pace is not None:
                found: list[Slot | Later] = list(slots(pace, claim, now, limits)[:count])
                # A ticket in a lane that has become held meanwhile is lost.
                return found + [Later(0, None)] * (count - len(found))
        raise Unavailable(f"{TRIES} times in a row, another took a turn of the host first.")


class PacedFetch:
    """A fetch that waits for the turn of its host, up to `near_ms`; a host whose turn is further away is busy."""

    def __init__(self, fetch: Fetch, pacer: Pacer, near_ms: int = PATIENCE_MS) -> None:
        self._fetch = fetch
        self._pacer = pacer
        self._near_ms = near_ms

    async def __call__(self, url: str, options: Any, deadline_s: float, *, gone: TargetFailed | None = None) -> Content:
        host = None if gone is not None else self._pacer.host_of(url)
        if host is None:
            return await self._fetch(url, options, deadline_s, gone=gone)
        started = time.monotonic()
        near_ms = min(self._near_ms, round(deadline_s * 500))
        if wait := await self._pacer.far(host, near_ms):
            raise _not_now(wait)
        turn = await self._pacer.turn(host, near_ms=near_ms)
        if isinstance(turn, Later):
            raise _not_now(turn.wait_ms)
        async with self._pacer.in_turn(url, turn):
            return await self._fetch(url, options, deadline_s - (time.monotonic() - started), gone=gone)


def _not_now(wait_ms: int) -> TargetBusy:
    return TargetBusy("Others ask this site as well, and its turn is not near.", retry_after=-(-wait_ms // 1000))
