"""The operator's own model gateway: where it is, what opens it, and one exchange with it."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from sift import __version__
from sift.connections import parse_retry_after

#: Seconds until the gateway has taken a connection: it is near, or it is not there.
CONNECT_SECONDS = 10.0
#: Statuses that mean «not now»; 529 is what Anthropic's API answers when it is overloaded.
BUSY = frozenset({429, 503, 529})

_TOKEN = re.compile(r"[!-~]+")  # a header of its own, and nothing that could begin another


class GatewayFailed(Exception):
    """The gateway can't be used; its text says why and holds nothing secret."""


class GatewayBusy(GatewayFailed):
    """The gateway asks to come back later; `retry_after` is in seconds, or None when it does not say."""

    def __init__(self, retry_after: float | None) -> None:
        super().__init__("it is busy")
        self.retry_after = retry_after


class Gateway:
    """The gateway whose API is at `url`, the base that clients are told: `https://gateway.example/v1`.

    `base` is that address, and `root` what absolute paths (`/v1/messages`, `/api/chat`) are put behind: the same
    without `/v1` at its end, so that a gateway below a path of its server (`https://host.example/llm/v1`) has all
    of its paths there. The address is the operator's, so the guard has no say in it. `secret` gives the bearer
    token, or is None where there is none.
    """

    def __init__(self, url: str, secret: Callable[[], Awaitable[str]] | None, tls: ssl.SSLContext) -> None:
        self.base = url.rstrip("/")
        self.root = self.base.removesuffix("/v1")
        self._secret = secret
        self._tls = tls

    @asynccontextmanager
    async def post(self, url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> AsyncIterator[Any]:
        """POST JSON to an address below `base` or `root`; yields the httpx2.Response with its body unread.

        Every exchange has a connection of its own, closed at its end and when it is cancelled: none is reused that
        the gateway may have given up meanwhile, which would look like a request that was cut off. Redirects are not
        followed, proxies of the environment not used, nothing is asked to be compressed. `seconds` bounds each wait
        for the gateway. Raises httpx2's errors, GatewayFailed without a credential that can be sent, and Unavailable.
        """
        import httpx2  # the functions that have no gateway do without it

        sent = {
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"sift/{__version__}",
            **headers,
            **await self._authorization(),
        }
        limits = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        async with (
            httpx2.AsyncClient(verify=self._tls, trust_env=False, timeout=limits) as client,
            client.stream("POST", url, content=body, headers=sent) as response,
        ):
            yield response

    async def _authorization(self) -> dict[str, str]:
        if self._secret is None:
            return {}
        token = await self._secret()
        if not _TOKEN.fullmatch(token):
            raise GatewayFailed("its secret is no bearer token")
        return {"Authorization": f"Bearer {token}"}


def read_retry_after(response: Any) -> float | None:
    """Seconds that a busy gateway asks for, 0 to a day, or None."""
    return parse_retry_after(response.headers.get("retry-after", ""), datetime.now(UTC))
