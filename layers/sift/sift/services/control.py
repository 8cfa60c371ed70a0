"""Steer a job that is under way."""

from __future__ import annotations

from sift.errors import Conflict
from sift.identity import Identity
from sift.jobs import LIVE, Meta, State
from sift.services.advance import Advancer
from sift.services.read import Reader


class Controller:
    """Changes a job's course on behalf of its caller."""

    def __init__(self, reader: Reader, advancer: Advancer) -> None:
        self._reader = reader
        self._advancer = advancer

    async def cancel(self, identity: Identity, job_id: str) -> tuple[Meta, State]:
        """The job, cancelled; cancelling it again changes nothing. Raises NotFound, or Conflict once it has ended.

        A fetch in flight may still end; its outcome is kept and counted.
        """
        _, state = await self._reader.job(identity, job_id)
        if state.status in LIVE:
            await self._advancer.settle(state, "cancelled")
        meta, state = await self._reader.job(identity, job_id)
        if state.status != "cancelled":
            raise Conflict(
                "invalid_state",
                f"The job is {state.status}; it can't be cancelled.",
                "Read it again: it has ended.",
            )
        return meta, state
