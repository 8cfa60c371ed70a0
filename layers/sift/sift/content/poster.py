"""The guarded post: one POST to an address that the guard admits, of whose answer only the head is looked at."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import httpcore2

from sift.connections import parse_retry_after
from sift.content.client import explain, late
from sift.content.guard import Guard
from sift.content.phases import PhaseTimeouts, Progress
from sift.content.responses import read_headers
from sift.content.transport import exchange

#: Seconds of each phase; a receiver of webhooks takes a message in and works on it later.
TIMEOUTS = PhaseTimeouts(dns=3.0, connect=3.0, read=8.0, write=5.0)


@dataclass(frozen=True)
class Posted:
    """What was answered: the HTTP status, and Retry-After in seconds where there was one."""

    status: int
    retry_after: float | None = None


class GuardedPoster:
    """Posts to URLs that the guard admits, each time anew: a name is judged by what it resolves to now. No redirect
    is followed, and nothing (cookies, connections) is shared between two posts."""

    def __init__(self, guard: Guard, user_agent: str, tls: ssl.SSLContext, timeouts: PhaseTimeouts = TIMEOUTS) -> None:
        self._guard = guard
        self._user_agent = user_agent
        self._tls = tls
        self._timeouts = timeouts

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_s: float) -> Posted:
        """POST JSON. Raises TargetFailed (invalid_url, blocked_address, dns_failed, tls_failed, connect_failed,
        timeout) or TargetBusy where there was no answer."""
        sent = {
            "user-agent": self._user_agent,
            "content-type": "application/json",
            "content-length": str(len(body)),
            **headers,
        }
        progress = Progress()
        try:
            async with asyncio.timeout(deadline_s):
                async with asyncio.timeout(self._timeouts.dns):
                    checked, addresses = await self._guard.admit(url)
                pairs = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
                async with exchange(checked, addresses, pairs, self._tls, self._timeouts, progress, body) as answer:
                    retry_after = read_headers(answer.headers).get("retry-after", "")
                    return Posted(answer.status, parse_retry_after(retry_after, datetime.now(UTC)))
        except (TimeoutError, httpcore2.TimeoutException) as error:
            raise late(progress.phase) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, ssl.SSLError, OSError) as error:
            raise explain(error) from error
