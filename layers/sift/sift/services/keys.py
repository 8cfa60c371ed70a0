"""API keys: `sift_<key id>_<secret>`, of which only the SHA-256 of the secret is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence

from sift.clock import Clock
from sift.errors import Unauthenticated
from sift.identity import Identity, KeyRecord
from sift.store.ports import Store

#: A key is looked up again after this (ms): a revoked one is refused within it.
CACHE_MS = 30_000
CACHE_SIZE = 1_000

_KEY = re.compile(r"sift_([0-9a-f]{12})_([0-9a-f]{64})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,63}")
#: What an unknown key is compared with, so that it takes the same steps as a wrong secret.
_NOBODY = "0" * 64


class KeyService:
    """Makes and checks keys."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._cache: dict[str, tuple[int, KeyRecord | None]] = {}

    async def create(
        self,
        *,
        tenant: str,
        actor: str,
        scopes: Sequence[str] = ("fetch",),
        limits: Mapping[str, int] | None = None,
        expires_at: int | None = None,
    ) -> str:
        """A new key as text; it can't be shown again. `expires_at` is in seconds since the epoch.

        Raises ValueError for a tenant or actor that is not 1 to 64 letters, digits, or `._@:-`.
        """
        for name in (tenant, actor):
            if not _NAME.fullmatch(name):
                raise ValueError(f"not a name: {name!r} (1 to 64 letters, digits, or ._@:-)")
        key_id, secret = secrets.token_hex(6), secrets.token_hex(32)
        identity = Identity(tenant, actor, key_id, tuple(scopes), dict(limits or {}))
        await self._store.put_key(KeyRecord(key_id, _hash(secret), identity, expires_at))
        return f"sift_{key_id}_{secret}"

    async def authenticate(self, credential: str | None) -> Identity:
        """Who holds this key. Raises Unauthenticated, which never says what was wrong with it."""
        match = _KEY.fullmatch(credential or "")
        if match is None:
            raise _refused()
        key_id, secret = match.groups()
        record = await self._look_up(key_id)
        expected = record.secret_sha256 if record else _NOBODY
        right = hmac.compare_digest(_hash(secret), expected)
        if record is None or not right:
            raise _refused()
        if record.expires_at is not None and record.expires_at * 1000 <= self._clock.now_ms():
            raise _refused()
        return record.identity

    async def _look_up(self, key_id: str) -> KeyRecord | None:
        now = self._clock.now_ms()
        cached = self._cache.get(key_id)
        if cached is not None and cached[0] > now:
            return cached[1]
        record = await self._store.get_key(key_id)
        if len(self._cache) >= CACHE_SIZE:
            self._cache.clear()
        self._cache[key_id] = (now + CACHE_MS, record)
        return record


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _refused() -> Unauthenticated:
    return Unauthenticated(
        "unauthenticated",
        "The request has no valid API key.",
        "Send `Authorization: Bearer sift_...` or `x-api-key: sift_...`.",
    )
