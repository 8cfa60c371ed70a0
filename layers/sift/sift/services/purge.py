"""Remove what a deleted job stored, in steps that may be repeated."""

from __future__ import annotations

from collections.abc import Callable

from sift.blobs.ports import Blobs
from sift.jobs import SEGMENT
from sift.store.ports import Store


class Purger:
    """The job is hidden by then; nobody waits for this."""

    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    async def purge(self, shard: int, job_id: str, seconds_left: Callable[[], float], reserve: float) -> bool:
        """Remove segment by segment while there is time; True when the job is gone for good.

        Blobs go before the items that name them, so that a crash in between leaves no blob without its name.
        """
        meta = await self._store.get_meta(job_id)
        if meta is not None:
            for number in range(-(-meta.total // SEGMENT)):
                if seconds_left() < reserve:
                    return False
                await self._blobs.remove(await self._store.segment_blobs(job_id, number))
                await self._store.remove_segment(job_id, number)
            await self._store.remove_job(job_id)
        await self._store.leave_removals(shard, job_id)
        return True
