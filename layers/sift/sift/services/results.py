"""Find the results file of a job; ask for it again where the one who should write it seems lost."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from sift.assembly import AssemblyMessage
from sift.clock import Clock
from sift.errors import Conflict, Unavailable
from sift.identity import Identity
from sift.jobs import ENDED, Meta, State
from sift.queue.ports import Queue
from sift.services.read import Reader
from sift.store.ports import Store

#: A file on which nothing happened for this long (ms) is asked for again: longer than its function may run, and than
#: the leases that it waits for.
QUIET_MS = 5 * 60_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """The job, and the key of its file; None while it is being written."""

    meta: Meta
    state: State
    key: str | None


class Results:
    """Writes nothing; a message that it sends too many is one that finds nothing to do."""

    def __init__(self, reader: Reader, store: Store, queue: Queue, clock: Clock) -> None:
        self._reader = reader
        self._store = store
        self._queue = queue
        self._clock = clock

    async def find(self, identity: Identity, job_id: str) -> Found:
        """The file of a job that the caller may read. Raises NotFound, and Conflict while the job is live."""
        meta, state = await self._reader.look(identity, job_id)
        if state.status not in ENDED:
            raise Conflict(
                "not_ended",
                f"The job is {state.status}, and its results file is written when it has ended.",
                "Wait for its end, or read its targets as they are now.",
            )
        assembly = await self._store.get_assembly(job_id)
        if assembly is not None and assembly.done:
            return Found(meta, state, assembly.key)
        last_seen = max(state.ended_at or 0, assembly.touched_at if assembly else 0)
        if self._clock.now_ms() - last_seen > QUIET_MS:
            await self._ask(job_id)
        return Found(meta, state, None)

    async def _ask(self, job_id: str) -> None:
        ids = {"job_id": job_id}
        _log.warning("a results file is asked for again", extra=ids)
        try:
            await self._queue.send([AssemblyMessage(job_id)])
        except Unavailable as error:
            _log.warning("it is asked for again with the next read: %s", error.detail, extra=ids)
