"""The public keys of an identity provider (RFC 7517): fetched from one address, and cached."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from sift.algorithms import ALGORITHMS, Jwk
from sift.clock import Clock
from sift.errors import Unavailable

#: Milliseconds after which keys are fetched anew, and after which they are not used without that.
FRESH_MS = 10 * 60_000
STALE_MS = 60 * 60_000
#: Least time between two fetches, after one that succeeded and after one that failed (ms): tokens with unknown key
#: ids can't make the provider's server busy.
REFETCH_MS = 60_000
RETRY_MS = 5_000
#: A provider has a handful of keys of about 2 KB each with their certificates.
MOST_BYTES = 256_000
MOST_KEYS = 100
TIMEOUT_SECONDS = 4.0

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

_log = logging.getLogger(__name__)


class Jwks:
    """The keys at an address. `fetch` gets it as bytes and raises OSError or ValueError."""

    def __init__(self, url: str, clock: Clock, fetch: Callable[[str], bytes] | None = None) -> None:
        self._url = url
        self._clock = clock
        self._fetch = fetch or fetch_keys
        self._keys: Sequence[Jwk] = ()
        self._fetched_at: int | None = None
        self._next_try = 0

    async def find(self, key_id: str | None, algorithm: str) -> Jwk | None:
        """The key for a token's header; without an id, the only one that fits. None: there is none.

        Raises Unavailable when the provider has not answered for too long to know.
        """
        age = self._age()
        if age is None or age >= FRESH_MS:
            await self._refresh()
        found = self._pick(key_id, algorithm)
        if found is None:  # it may be newer than what is known
            await self._refresh()
            found = self._pick(key_id, algorithm)
        age = self._age()
        if age is None or age >= STALE_MS:
            raise Unavailable("The identity provider's keys can't be had.")
        return found

    def _age(self) -> int | None:
        return None if self._fetched_at is None else self._clock.now_ms() - self._fetched_at

    async def _refresh(self) -> None:
        now = self._clock.now_ms()
        if now < self._next_try:
            return
        self._next_try = now + RETRY_MS
        try:
            self._keys = read_keys(await asyncio.to_thread(self._fetch, self._url))
        except (OSError, ValueError) as error:
            _log.warning("the keys of the identity provider can't be had: %s", error)
            return
        self._fetched_at, self._next_try = now, now + REFETCH_MS

    def _pick(self, key_id: str | None, algorithm: str) -> Jwk | None:
        fitting = [key for key in self._keys if _fits(key, key_id, algorithm)]
        return fitting[0] if fitting and (key_id is not None or len(fitting) == 1) else None


def _fits(key: Jwk, key_id: str | None, algorithm: str) -> bool:
    kind, curve = ALGORITHMS[algorithm]
    return (
        key.get("kty") == kind
        and (curve is None or key.get("crv") == curve)
        and key.get("alg", algorithm) == algorithm
        and key.get("use", "sig") == "sig"
        and (key_id is None or key.get("kid") == key_id)
    )


def read_keys(data: bytes) -> Sequence[Jwk]:
    """The keys of a JWK Set. Raises ValueError for anything else."""
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("not a JWK Set") from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise ValueError("not a JWK Set")
    return [key for key in keys if isinstance(key, dict)][:MOST_KEYS]


def is_trusted_address(url: str) -> bool:
    """Whether keys may be fetched from there: over TLS, or from this machine, where tests have their provider."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.username or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)


def fetch_keys(url: str) -> bytes:
    """The bytes at the address, which is the operator's: no redirect, no proxy, no content coding, one try.

    Raises OSError when it does not answer in time, ValueError when what it answers can't be keys.
    """
    import urllib3  # most deployments have no identity provider

    ends_at = time.monotonic() + TIMEOUT_SECONDS
    timeout = urllib3.Timeout(connect=TIMEOUT_SECONDS / 2, read=TIMEOUT_SECONDS / 2)
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    data = b""
    try:
        with urllib3.PoolManager() as pool:
            answer = pool.request(
                "GET", url, headers=headers, timeout=timeout, retries=False, redirect=False, preload_content=False
            )
            try:
                if answer.status != 200:
                    raise ValueError(f"the answer has status {answer.status}")
                while chunk := answer.read1(65_536, decode_content=False):
                    data += chunk
                    if len(data) > MOST_BYTES:
                        raise ValueError(f"the answer is over {MOST_BYTES} bytes")
                    if time.monotonic() > ends_at:
                        raise TimeoutError("the answer takes too long")
            finally:
                answer.close()
    except urllib3.exceptions.HTTPError as error:
        raise OSError(type(error).__name__) from error
    return data
