"""Run a target that is a request: send it to the gateway while its job goes on, and keep the answer."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Protocol

from sift.blobs.ports import Blobs
from sift.clock import Clock, rfc3339
from sift.errors import DataUnreadable, TargetBusy, TargetCut, TargetFailed, Unavailable
from sift.identity import Identity
from sift.jobs import ACTIVE, SEGMENT, Meta, State
from sift.messages import RequestMessage
from sift.model_requests import UpstreamRequest, UpstreamResponse, refuse_model
from sift.services.outcomes import keep_response
from sift.services.runner import Claimed, Stopped, check_budget, crashed
from sift.store.ports import Outcome, Store

#: How often the job of a request in flight is looked at, in seconds: a pause or a cancel is felt within two.
POLL_SECONDS = 1.5
#: An answer that the bucket did not take is tried again after so many seconds, while there are as many left as a try
#: may take in which AWS does not answer.
KEEP_SECONDS = 5.0
STORE_SECONDS = 40.0
#: What of the submitter the gateway is told.
_TOLD = ("tenant", "actor", "subject", "application")

_log = logging.getLogger(__name__)


class Upstream(Protocol):
    """The gateway. Sending raises TargetBusy, TargetCut or TargetFailed; cancelling it aborts the connection."""

    def send(self, request: UpstreamRequest, seconds: float) -> AbstractAsyncContextManager[UpstreamResponse]: ...


class InferenceRunner:
    """The runner of inference jobs. `seconds`: the most that one request may take, inside the function's timeout."""

    isolates = False

    def __init__(self, upstream: Upstream, store: Store, blobs: Blobs, clock: Clock, seconds: float) -> None:
        self._upstream = upstream
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self.seconds = seconds

    async def run(self, claimed: Claimed, seconds: float, *, gone: TargetFailed | None = None) -> Outcome:
        """As `runner.Runner`. Raises Stopped when the job does not go on before the answer is there."""
        message = claimed.message
        if not isinstance(message, RequestMessage):
            raise AssertionError("a URL came to the worker of inference jobs")
        was_out = claimed.entry.claims > 1 or claimed.entry.busy_since is not None
        if was_out and (answered := await self._answered(claimed)) is not None:
            return answered
        if gone is not None:
            raise gone
        try:
            return await self._run(claimed, message, seconds)
        except (TargetBusy, TargetCut, TargetFailed, Stopped, Unavailable, DataUnreadable):
            raise
        except Exception as error:
            # A fault of ours must not cost the request its outcome, nor its batch-mates theirs.
            _log.exception("the gateway's client failed on a request")
            raise crashed() from error

    async def _answered(self, claimed: Claimed) -> Outcome | None:
        """What an earlier claim stored before it died: it was not counted, and need not be asked for again."""
        index = claimed.message.index
        number = index // SEGMENT
        found = await self._store.get_segment_outcomes(claimed.message.job_id, number, index, index)
        outcome = found.get(index)
        return None if outcome is None else replace(outcome, lease=claimed.lease)

    async def _run(self, claimed: Claimed, message: RequestMessage, seconds: float) -> Outcome:
        began = self._clock.now_ms()
        meta = await self._store.get_meta(message.job_id)
        if meta is None:
            raise Stopped
        if (reason := refuse_model(Identity.from_snapshot(meta.identity), message.model)) is not None:
            raise TargetFailed("model_not_allowed", reason, "Use another model; an operator decides which.")
        check_budget(claimed.state, 1)  # an answer that can't be kept is not to be paid for
        request = UpstreamRequest(
            path=message.path,
            body=await self._body(message),
            identity=_told(meta),
            request_id=f"{message.job_id}/{message.index}",
        )
        left_s = seconds - (self._clock.now_ms() - began) / 1000
        arrived = asyncio.Event()
        asking = asyncio.create_task(self._ask(claimed, request, left_s, arrived))
        try:
            return await self._attend(claimed, asking, arrived)
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})

    async def _body(self, message: RequestMessage) -> bytes:
        if message.body is not None:
            return message.body.encode()
        body = await self._blobs.get(message.blob or "")
        if body is None:
            raise TargetFailed("damaged", "The body of the request is gone.", "Submit it again.")
        return body

    async def _ask(self, claimed: Claimed, request: UpstreamRequest, seconds: float, arrived: asyncio.Event) -> Outcome:
        """Send it and keep the answer. Once that has arrived whole, nothing gives it up any more."""
        began = self._clock.now_ms()
        about = {"started_at": rfc3339(began), "attempts": claimed.attempts}
        try:
            async with self._upstream.send(request, seconds) as response:
                arrived.set()
                check_budget(claimed.state, response.size)
                return await self._keep(claimed, response, about, began + round(seconds * 1000))
        except TargetFailed as error:
            error.meta = {**about, **error.meta}
            raise

    async def _keep(self, claimed: Claimed, response: UpstreamResponse, about: dict[str, Any], until: int) -> Outcome:
        """The outcome of an answer, which waits on disk for a bucket that is away: another one is paid for again."""
        now = self._clock.now_ms()
        while True:
            try:
                return await keep_response(self._blobs, claimed.message, claimed.lease, response, about, now)
            except Unavailable as error:
                if self._clock.now_ms() + (KEEP_SECONDS + STORE_SECONDS) * 1000 > until:
                    raise
                _log.warning("an answer waits to be stored: %s", error.detail)
            await self._clock.sleep(KEEP_SECONDS)
            response.file.seek(0)

    async def _attend(self, claimed: Claimed, asking: asyncio.Task[Outcome], arrived: asyncio.Event) -> Outcome:
        """What comes of asking, which ends when its job does not go on."""
        while not await self._arrives(asking, arrived):
            try:
                state = await self._store.get_state(claimed.message.job_id)
            except Unavailable:
                continue
            if not arrived.is_set() and not asking.done() and not _goes_on(claimed, state):
                asking.cancel()
                await asyncio.wait({asking})
                if asking.cancelled():
                    raise Stopped
        return await asking

    async def _arrives(self, asking: asyncio.Task[Outcome], arrived: asyncio.Event) -> bool:
        """Whether the answer is there, or none will come; it waits for that, until the job is to be looked at."""
        waits = [asyncio.create_task(arrived.wait()), asyncio.create_task(self._clock.sleep(POLL_SECONDS))]
        try:
            await asyncio.wait({asking, *waits}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return arrived.is_set() or asking.done()


def _goes_on(claimed: Claimed, state: State | None) -> bool:
    """Whether the target is still mine to work on."""
    if state is None or state.status not in ACTIVE:
        return False
    entry = state.flight.get(claimed.message.index)
    return entry is not None and entry.until == claimed.lease


def _told(meta: Meta) -> dict[str, str]:
    return {name: meta.identity[name] for name in _TOLD if meta.identity.get(name) is not None}
