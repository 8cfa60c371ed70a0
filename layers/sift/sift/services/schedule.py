"""Submit what an event or a schedule asks for, as the one identity that the operator lets them have."""

from __future__ import annotations

from dataclasses import replace

from sift.clock import Clock
from sift.errors import Forbidden
from sift.identity import FETCH, INFERENCE, Identity
from sift.services.submit import Request, Submitted, Submitter
from sift.store.ports import Store


class Scheduler:
    """Submits as whoever holds the key `key_id`; "" for a deployment that takes no events."""

    def __init__(self, store: Store, submitter: Submitter, clock: Clock, key_id: str) -> None:
        self._store = store
        self._submitter = submitter
        self._clock = clock
        self._key_id = key_id

    async def submit(self, request: Request) -> Submitted:
        """The job of one firing, whose key the request carries: the same firing again is the same job.

        Raises Forbidden when the operator's key is not there for it, and whatever a submission may be refused with.
        """
        # A firing is new work by its key. `fresh` would keep no record of it, and make a second delivery a second job.
        identity = await self._identity(INFERENCE if request.kind == "inference" else FETCH)
        return await self._submitter.submit(identity, replace(request, fresh=False))

    async def _identity(self, scope: str) -> Identity:
        """Read for each firing: a key that was revoked a second ago is not used."""
        if not self._key_id:
            raise _refused("EventKeyId is empty: this deployment takes no events.")
        record = await self._store.get_key(self._key_id)
        if record is None:
            raise _refused("EventKeyId names no key.")
        if not record.events:
            raise _refused("The key of EventKeyId is not for events.")
        if record.revoked_at is not None:
            raise _refused("The key of EventKeyId is revoked.")
        if record.expires_at is not None and record.expires_at * 1000 <= self._clock.now_ms():
            raise _refused("The key of EventKeyId has expired.")
        identity = replace(record.identity, auth_type="event")
        identity.require(scope)
        return identity


def _refused(detail: str) -> Forbidden:
    return Forbidden("forbidden", detail, "An operator makes a key with sift keys create --events and sets EventKeyId.")
