"""The guarded fetch: one GET with its redirects, within limits of bytes, time and hops, as a document's bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import httpcore2
import httpx2

from sift.content.addresses import IPAddress
from sift.content.guard import CheckedUrl, Guard
from sift.content.responses import (
    SUPPORTED_CODINGS,
    check_length,
    check_status,
    is_oversized,
    is_refused,
    is_reset,
    is_tls_failure,
    join,
    read_codings,
    read_location,
)
from sift.content.transport import Phase, PhaseTimeouts, Progress, exchange
from sift.errors import TargetBusy, TargetFailed

_LATE: Mapping[Phase, str] = {
    "dns": "The host name was not resolved in time.",
    "connect": "The server did not take the connection in time.",
    "tls": "The TLS handshake did not end in time.",
    "headers": "The server did not answer in time.",
    "body": "The document did not arrive in time.",
}


@dataclass(frozen=True)
class FetchLimits:
    """Bounds of one fetch: bytes on the wire, bytes decoded, bytes of response headers, redirects."""

    wire_bytes: int = 10 * 1024 * 1024
    decoded_bytes: int = 20 * 1024 * 1024
    header_bytes: int = 64 * 1024
    redirects: int = 10


@dataclass(frozen=True)
class Fetched:
    """A document as it arrived, its content codings taken off.

    `content_type` is the header as sent ("" without one); `hops` are the URLs that redirected, in order;
    `downgraded` says that a redirect went from https to http.
    """

    body: bytes
    url: str
    final_url: str
    status: int
    content_type: str
    hops: tuple[str, ...]
    downgraded: bool


class GuardedClient:
    """Fetches URLs that the guard admits; nothing (cookies, connections) is shared between two fetches."""

    def __init__(
        self,
        guard: Guard,
        user_agent: str,
        tls: ssl.SSLContext,
        limits: FetchLimits | None = None,
        timeouts: PhaseTimeouts | None = None,
    ) -> None:
        self._guard = guard
        self._user_agent = user_agent
        self._tls = tls
        self._limits = limits or FetchLimits()
        self._timeouts = timeouts or PhaseTimeouts()

    async def fetch(self, url: str, deadline_s: float) -> Fetched:
        """GET `url` and follow its redirects, each admitted again by the guard.

        Raises TargetFailed (invalid_url, blocked_address, dns_failed, tls_failed, connect_failed, timeout,
        too_large, too_many_redirects, http_error, damaged) or TargetBusy.
        """
        progress = Progress()
        try:
            async with asyncio.timeout(deadline_s):
                return await self._follow(url, progress)
        except TimeoutError as error:
            raise _timeout(progress.phase) from error

    async def _admit(self, url: str, progress: Progress) -> tuple[CheckedUrl, list[IPAddress]]:
        progress.phase = "dns"
        try:
            async with asyncio.timeout(self._timeouts.dns):
                return await self._guard.admit(url)
        except TimeoutError as error:
            raise _timeout(progress.phase) from error

    async def _follow(self, url: str, progress: Progress) -> Fetched:
        cookies = httpx2.Cookies()
        hops: list[str] = []
        downgraded = False
        first = ""
        while True:
            checked, addresses = await self._admit(url, progress)
            first = first or checked.url
            answer = await self._get(checked, addresses, cookies, progress)
            if isinstance(answer, str):
                if len(hops) == self._limits.redirects:
                    raise TargetFailed(
                        "too_many_redirects",
                        f"More than {self._limits.redirects} redirects.",
                        "Send the address that the redirects lead to.",
                    )
                hops.append(checked.url)
                url = answer
                downgraded = downgraded or (checked.scheme == "https" and url.lower().startswith("http:"))
                continue
            status, content_type, body = answer
            return Fetched(body, first, checked.url, status, content_type, tuple(hops), downgraded)

    async def _get(
        self, url: CheckedUrl, addresses: list[IPAddress], cookies: httpx2.Cookies, progress: Progress
    ) -> tuple[int, str, bytes] | str:
        """One exchange: the absolute address of a redirect, or status, content type and body."""
        request = httpx2.Request("GET", url.url, headers=self._headers())
        cookies.set_cookie_header(request)
        headers = [pair for pair in request.headers.raw if pair[0].lower() != b"host"]
        try:
            async with exchange(url, addresses, headers, self._tls, self._timeouts, progress) as raw:
                if sum(len(name) + len(value) for name, value in raw.headers) > self._limits.header_bytes:
                    raise TargetFailed("too_large", "The response's headers are too large.")
                head = httpx2.Headers(raw.headers)
                cookies.extract_cookies(httpx2.Response(raw.status, headers=head, request=request))
                location = read_location(raw.headers) if raw.status in (301, 302, 303, 307, 308) else None
                if location is not None:
                    return join(url.url, location)
                check_status(raw.status, head)
                return raw.status, head.get("content-type", ""), await self._read(raw, head)
        except httpcore2.TimeoutException as error:
            raise _timeout(progress.phase) from error
        except httpx2.DecodingError as error:
            raise TargetFailed("damaged", "The body does not match its Content-Encoding.") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, ssl.SSLError, OSError) as error:
            raise _explain(error) from error

    def _headers(self) -> dict[str, str]:
        return {
            "User-Agent": self._user_agent,
            "Accept": "text/html,application/xhtml+xml,application/pdf,application/json;q=0.9,*/*;q=0.8",
            "Accept-Language": "en,*;q=0.5",
            "Accept-Encoding": ", ".join(SUPPORTED_CODINGS),
        }

    async def _read(self, raw: httpcore2.Response, head: httpx2.Headers) -> bytes:
        check_length(head, self._limits.wire_bytes)
        decoded = httpx2.Response(
            raw.status,
            headers={"content-encoding": ", ".join(read_codings(head))},
            stream=_CountedStream(raw, self._limits.wire_bytes),
        )
        parts, size = [], 0
        async for part in decoded.aiter_bytes():
            size += len(part)
            if size > self._limits.decoded_bytes:
                raise TargetFailed("too_large", f"The document is over {self._limits.decoded_bytes} bytes decoded.")
            parts.append(part)
        return b"".join(parts)


class _CountedStream(httpx2.AsyncByteStream):
    """The bytes of a response as they come, up to a limit."""

    def __init__(self, raw: httpcore2.Response, limit: int) -> None:
        self._raw = raw
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._raw.aiter_stream():
            size += len(part)
            if size > self._limit:
                raise TargetFailed("too_large", f"The document is over {self._limit} bytes on the wire.")
            yield part


def _timeout(phase: Phase) -> TargetFailed:
    return TargetFailed("timeout", _LATE[phase], "Try it again later, or a lighter page.")


def _explain(error: Exception) -> TargetFailed | TargetBusy:
    if is_tls_failure(error):
        return TargetFailed("tls_failed", "The server's certificate or TLS handshake is not valid.")
    if is_refused(error):
        return TargetBusy("The server refuses connections.")
    if is_reset(error):
        return TargetBusy("The server resets connections.")
    if is_oversized(error):
        return TargetFailed("too_large", "The response's headers are too large.")
    if isinstance(error, httpcore2.ConnectError):
        return TargetFailed("connect_failed", "The server cannot be reached.", "Check the address and port.")
    return TargetFailed("connect_failed", "The server broke the connection off.", "Try it again later.")
