"""Remove what a deleted job stored, in steps that may be repeated."""

from __future__ import annotations

from collections.abc import Callable

from sift.blob_keys import job_prefix
from sift.blobs.ports import Bucket
from sift.clock import CLOCK_MARGIN_MS, Clock
from sift.jobs import SEGMENT
from sift.store.ports import Store


class Purger:
    """The job is hidden by then; nobody waits for this."""

    def __init__(self, store: Store, blobs: Bucket, clock: Clock) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock

    async def purge(self, shard: int, job_id: str, seconds_left: Callable[[], float], reserve: float) -> bool:
        """Remove blobs, then segment by segment, while there is time; True when the job is gone for good.

        A fetch that outlived the cancel of its job may still store an outcome: nothing is removed before its
        lease has ended.
        """
        # Each by itself: the state of a hidden job is expired, and the table may have removed it already.
        state, meta = await self._store.get_state(job_id), await self._store.get_meta(job_id)
        if state is not None and state.running(self._clock.now_ms() - CLOCK_MARGIN_MS):
            return False
        # Its parts can't be seen, and whoever goes on with the file would not know of them once its item is gone.
        assembly = await self._store.get_assembly(job_id)
        if assembly is not None and assembly.upload is not None and not assembly.done:
            await self._blobs.abort_upload(assembly.key, assembly.upload)
        more = True
        while more:
            if seconds_left() < reserve:
                return False
            more = await self._blobs.remove(job_prefix(job_id))
        if meta is not None:
            for number in range(-(-meta.total // SEGMENT)):
                if seconds_left() < reserve:
                    return False
                await self._store.remove_segment(job_id, number)
        await self._store.remove_job(job_id)
        await self._store.leave_removals(shard, job_id)
        return True
