"""Put what happens to a job on the queue of notices; a job without a webhook costs nothing here."""

from __future__ import annotations

import logging

from sift.clock import Clock, rfc3339
from sift.errors import Unavailable
from sift.jobs import Meta, State, counts
from sift.notices import Notice
from sift.queue.ports import NoticeSender
from sift.store.ports import Outcome
from sift.webhooks import BITS, JOB_ENDED, JOB_STARTED, TARGET_DONE, TARGET_FAILED

_log = logging.getLogger(__name__)


class Notices:
    """`ended` is part of the announcement, which is repeated until it has succeeded. The others are said once: what
    the queue does not take then is not said, for no worker waits for a webhook."""

    def __init__(self, queue: NoticeSender, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock

    async def ended(self, meta: Meta, state: State) -> None:
        """The end of a job. Raises Unavailable when it is not on the queue."""
        if meta.webhook is None or JOB_ENDED not in meta.webhook["events"]:
            return
        ended_at = state.ended_at or 0
        data = {
            "status": state.status,
            "error": state.error,
            "counts": counts(state, ended_at),
            "bytes": state.bytes,
            "ended_at": rfc3339(ended_at),
        }
        if not await self._queue.send([Notice(meta.job_id, JOB_ENDED, ended_at, data=data)]):
            raise Unavailable("The queue of notices did not take the end of a job.")

    async def started(self, state: State, claimed_at: int) -> None:
        """A claim that was made at this time, when it is the one that has started the job."""
        if not state.notify & BITS[JOB_STARTED]:
            return
        # Claims of one batch are made in the same millisecond: the first is the one that no other came before.
        claims = sum(entry.claims for entry in state.flight.values())
        if state.started_at == claimed_at and claims == 1 and not state.done + state.failed:
            data = {"status": "running", "started_at": rfc3339(claimed_at)}
            await self._try(Notice(state.job_id, JOB_STARTED, claimed_at, data=data))

    async def finished(self, state: State, outcome: Outcome) -> None:
        """A target that has been counted, in the state that counted it."""
        event = TARGET_DONE if outcome.status == "done" else TARGET_FAILED
        if not state.notify & BITS[event]:
            return
        document = outcome.document
        data = {
            "index": outcome.index,
            "id": document["id"],
            **{name: document[name] for name in ("url", "path", "model") if name in document},
            "status": outcome.status,
            "attempts": document["attempts"],
            "media_type": document.get("media_type"),
            "bytes": outcome.size if outcome.status == "done" else None,
            "error": document["error"],
            "finished_at": document.get("finished_at"),
        }
        await self._try(Notice(state.job_id, event, self._clock.now_ms(), outcome.index, data))

    async def _try(self, notice: Notice) -> None:
        try:
            await self._queue.send([notice])
        except Unavailable as error:
            _log.warning("a notice is not sent: %s", error.detail, extra={"event": notice.event})
        except Exception as error:  # noqa: BLE001 - a queue that is gone or closed to us must not cost a target its outcome
            _log.error("a notice is not sent", exc_info=error, extra={"event": notice.event})
