"""API keys: `sift_<key id>_<secret>`, of which only the SHA-256 of the secret is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence

from sift.clock import Clock
from sift.errors import Unauthenticated
from sift.identity import (
    DEFAULT_CLASS,
    FETCH,
    NAME_FORM,
    Identity,
    KeyRecord,
    check_limit,
    is_name,
    is_scope,
)
from sift.store.ports import Store

#: A key is looked up again after this (ms): a revoked one is refused within it.
CACHE_MS = 30_000
CACHE_SIZE = 1_000
#: The last second that a date has a way to be written: the end of the year 9999.
LAST_SECOND = 253_402_300_799

_KEY = re.compile(r"sift_([0-9a-f]{12})_([0-9a-f]{64})")
_KEY_ID = re.compile(r"[0-9a-f]{12}")
#: What an unknown key is compared with, so that it takes the same steps as a wrong secret.
_NOBODY = "0" * 64


class KeyService:
    """Makes, lists, revokes and checks keys."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._cache: dict[str, tuple[int, KeyRecord | None]] = {}

    async def create(
        self,
        *,
        tenant: str,
        actor: str,
        scopes: Sequence[str] = (FETCH,),
        limits: Mapping[str, int] | None = None,
        caller_class: str = DEFAULT_CLASS,
        expires_at: int | None = None,
        subject: str | None = None,
        application: str | None = None,
        allowed_models: Sequence[str] | None = None,
        denied_models: Sequence[str] = (),
        events: bool = False,
    ) -> str:
        """A new key as text; it can't be shown again. `expires_at` is in seconds since the epoch; with `events`,
        events and schedules may submit as whoever holds it.

        Raises ValueError, with what is wrong, for names, scopes, limits or times that mean nothing here.
        """
        for name in (tenant, actor, caller_class):
            if not is_name(name):
                raise ValueError(f"not a name: {name!r} ({NAME_FORM})")
        if not scopes or not all(map(is_scope, scopes)):
            raise ValueError(f"not scopes: {', '.join(scopes) or 'none'} (fetch, inference, admin or admin:TENANT)")
        for limit, value in (limits or {}).items():
            check_limit(limit, value)
        if expires_at is not None and not 0 <= expires_at <= LAST_SECOND:
            raise ValueError("expires_at is a time from 1970 to the end of 9999, in seconds")
        key_id, secret = secrets.token_hex(6), secrets.token_hex(32)
        identity = Identity(
            tenant,
            actor,
            key_id,
            tuple(scopes),
            dict(limits or {}),
            subject=subject,
            application=application,
            allowed_models=None if allowed_models is None else tuple(allowed_models),
            denied_models=tuple(denied_models),
            caller_class=caller_class,
        )
        created_at = self._clock.now_ms() // 1000
        record = KeyRecord(key_id, _hash(secret), identity, expires_at, created_at, events=events)
        await self._store.put_key(record)
        return f"sift_{key_id}_{secret}"

    async def find(self, key_id: str) -> KeyRecord | None:
        """What is stored of a key."""
        return await self._store.get_key(key_id)

    async def list(self) -> Sequence[KeyRecord]:
        """Every key, the newest first; those that have expired until the table forgets them."""
        return sorted(await self._store.list_keys(), key=lambda record: record.created_at or 0, reverse=True)

    async def revoke(self, key_id: str) -> KeyRecord | None:
        """The key, revoked; None: there is none with this id. Functions refuse it within CACHE_MS."""
        if not _KEY_ID.fullmatch(key_id):
            return None
        return await self._store.revoke_key(key_id, self._clock.now_ms() // 1000)

    async def authenticate(self, credential: str | None) -> Identity:
        """Who holds this key. Raises Unauthenticated, which never says what was wrong with it."""
        match = _KEY.fullmatch(credential or "")
        if match is None:
            raise Unauthenticated()
        key_id, secret = match.groups()
        record = await self._look_up(key_id)
        expected = record.secret_sha256 if record else _NOBODY
        right = hmac.compare_digest(_hash(secret), expected)
        if record is None or not right or record.revoked_at is not None:
            raise Unauthenticated()
        if record.expires_at is not None and record.expires_at * 1000 <= self._clock.now_ms():
            raise Unauthenticated()
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
