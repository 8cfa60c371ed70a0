"""The secrets that a caller's webhooks are signed with: made by an operator, and kept as they are, for they sign."""

from __future__ import annotations

from sift.clock import Clock
from sift.errors import Unavailable
from sift.identity import NAME_FORM, is_name
from sift.store.ports import Store
from sift.webhooks import OVERLAP_SECONDS, Secrets, new_secret

#: Two operators who make one at the same time: one of them tries again.
TRIES = 5


class WebhookSecrets:
    """Makes them, the first as well as the next."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def renew(self, tenant: str, actor: str, overlap_seconds: int = OVERLAP_SECONDS) -> str:
        """A new secret of the caller, which signs from now on; the one before it signs beside it for so long.

        Raises ValueError for what is no name, Unavailable when others renew it all the time.
        """
        for name in (tenant, actor):
            if not is_name(name):
                raise ValueError(f"not a name: {name!r} ({NAME_FORM})")
        caller, fresh = f"{tenant}/{actor}", new_secret()
        until = self._clock.now_ms() // 1000 + overlap_seconds
        for _ in range(TRIES):
            seen = await self._store.get_secrets(caller)
            if seen is not None and seen.current == fresh:
                return fresh  # stored by a try whose answer was lost
            renewed = Secrets(fresh, seen.current, until) if seen and overlap_seconds else Secrets(fresh)
            if await self._store.put_secrets(caller, renewed, seen):
                return fresh
        raise Unavailable("The secret is being renewed by somebody else.")
