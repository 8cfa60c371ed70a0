"""The guarded fetch: one GET with its redirects, within limits of bytes, time and hops, as a document's bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sift.connections import is_refused, is_reset, is_tls_failure
from sift.content.addresses import IPAddress
from sift.content.codings import Unpacker
from sift.content.guard import CheckedUrl, Guard
from sift.content.hosts import blocked
from sift.content.outgoing import Outgoing
from sift.content.phases import Phase, PhaseTimeouts, Progress
from sift.content.responses import (
    NOT_MODIFIED,
    SUPPORTED_CODINGS,
    check_length,
    check_status,
    is_oversized,
    join,
    read_codings,
    read_headers,
    read_location,
    read_validator,
    too_large,
)
from sift.content.trust import Trust
from sift.errors import TargetBusy, TargetFailed

if TYPE_CHECKING:
    import httpcore2

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

    `content_type` is the header as sent ("" without one); `hops` are the URLs that redirected, in order; `warnings`
    are for the reader. `etag` and `last_modified` are the headers, fit to be sent back; None without one.
    `not_modified`: the caller's condition held, and there is no body.
    `recovered` is set for an archived copy, as `meta.recovered` shows it; `url` and `final_url` are then addresses
    of the page that it is a copy of. `headers` are the answer's, by lower-case name.
    """

    body: bytes
    url: str
    final_url: str
    status: int
    content_type: str
    hops: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    etag: str | None = None
    last_modified: str | None = None
    not_modified: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    recovered: dict[str, Any] | None = None


@dataclass(frozen=True)
class _Document:
    """What the last answer of a target holds."""

    status: int
    head: Mapping[str, str]
    body: bytes
    warnings: list[str]


class GuardedClient:
    """Fetches URLs that the guard admits; nothing (cookies, connections) is shared between two fetches."""

    def __init__(
        self,
        guard: Guard,
        user_agent: str,
        trust: Trust,
        limits: FetchLimits | None = None,
        timeouts: PhaseTimeouts | None = None,
    ) -> None:
        self._guard = guard
        self._user_agent = user_agent
        self._trust = trust
        self._limits = limits or FetchLimits()
        self._timeouts = timeouts or PhaseTimeouts()

    def with_limits(self, limits: FetchLimits) -> GuardedClient:
        """The same client with other limits."""
        return GuardedClient(self._guard, self._user_agent, self._trust, limits, self._timeouts)

    async def fetch(
        self,
        url: str,
        deadline_s: float,
        headers: Mapping[str, str] | None = None,
        *,
        may_follow: Callable[[str], bool] | None = None,
    ) -> Fetched:
        """GET `url` and follow its redirects, each admitted again by the guard; `may_follow` narrows where they lead.

        `headers` are the caller's own, as `check_headers` gives them; they win over the client's.

        Raises TargetFailed (invalid_url, blocked_address, dns_failed, tls_failed, connect_failed, timeout,
        too_large, too_many_redirects, http_error, damaged) or TargetBusy.
        """
        if url[:6].lower() == "https:":
            self._trust.prepare()
        progress = Progress()
        outgoing = Outgoing(self._user_agent, SUPPORTED_CODINGS, headers or {})
        try:
            async with asyncio.timeout(deadline_s):
                return await self._follow(url, outgoing, progress, may_follow)
        except TimeoutError as error:
            raise late(progress.phase) from error

    async def _admit(self, url: str, progress: Progress) -> tuple[CheckedUrl, list[IPAddress]]:
        progress.phase = "dns"
        try:
            async with asyncio.timeout(self._timeouts.dns):
                return await self._guard.admit(url)
        except TimeoutError as error:
            raise late(progress.phase) from error

    async def _follow(
        self, url: str, outgoing: Outgoing, progress: Progress, may_follow: Callable[[str], bool] | None
    ) -> Fetched:
        hops: list[str] = []
        downgraded = False
        while True:
            checked, addresses = await self._admit(url, progress)
            answer = await self._get(checked, addresses, outgoing, progress)
            if isinstance(answer, str):
                if len(hops) == self._limits.redirects:
                    raise TargetFailed(
                        "too_many_redirects",
                        f"More than {self._limits.redirects} redirects.",
                        "Send the address that the redirects lead to.",
                    )
                if may_follow is not None and not may_follow(answer):
                    raise blocked()
                hops.append(checked.url)
                url = answer
                downgraded = downgraded or (checked.scheme == "https" and url.lower().startswith("http:"))
                continue
            warnings = ["A redirect went from https to http."] if downgraded else []
            return Fetched(
                body=answer.body,
                url=hops[0] if hops else checked.url,
                final_url=checked.url,
                status=answer.status,
                content_type=answer.head.get("content-type", ""),
                hops=tuple(hops),
                warnings=(*warnings, *answer.warnings),
                etag=read_validator(answer.head, "etag"),
                last_modified=read_validator(answer.head, "last-modified"),
                not_modified=answer.status == NOT_MODIFIED,
                headers=answer.head,
            )

    async def _get(
        self, url: CheckedUrl, addresses: list[IPAddress], outgoing: Outgoing, progress: Progress
    ) -> _Document | str:
        """One exchange: the absolute address of a redirect, or what the answer holds."""
        # Loaded with the first exchange and not before: it takes as long as all else of ours together.
        import httpcore2

        from sift.content.transport import exchange

        headers = outgoing.headers_for(url)
        tls = await self._trust.context() if url.scheme == "https" else None
        try:
            async with exchange(url, addresses, headers, tls, self._timeouts, progress) as raw:
                if sum(len(name) + len(value) for name, value in raw.headers) > self._limits.header_bytes:
                    raise too_large("The response's headers are too large.")
                head = read_headers(raw.headers)
                outgoing.keep_cookies(url, raw.headers)
                location = read_location(raw.headers) if raw.status in (301, 302, 303, 307, 308) else None
                if location is not None:
                    return join(url.url, location)
                if raw.status == NOT_MODIFIED and outgoing.is_conditional:
                    return _Document(raw.status, head, b"", [])
                check_status(raw.status, head)
                return _Document(raw.status, head, *await self._read(raw, head))
        except httpcore2.TimeoutException as error:
            raise late(progress.phase) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, ssl.SSLError, OSError) as error:
            raise explain(error) from error

    async def _read(self, raw: httpcore2.Response, head: Mapping[str, str]) -> tuple[bytes, list[str]]:
        check_length(head, self._limits.wire_bytes)
        unpacker = Unpacker(read_codings(head), self._limits.decoded_bytes)
        pieces: list[bytes] = []
        size = 0
        async for part in raw.aiter_stream():
            size += len(part)
            if size > self._limits.wire_bytes:
                raise too_large(f"The document is over {self._limits.wire_bytes} bytes on the wire.")
            pieces += unpacker.feed(part)
        unpacker.end()
        warnings = ["Bytes after the end of the compressed document were left out."] if unpacker.trailing else []
        return b"".join(pieces), warnings


def late(phase: Phase) -> TargetFailed:
    """An exchange that took too long, by how far it came."""
    return TargetFailed("timeout", _LATE[phase], "Try it again later, or a lighter page.")


def explain(error: Exception) -> TargetFailed | TargetBusy:
    """A connection that failed, as the error of its target."""
    if is_tls_failure(error):
        return TargetFailed(
            "tls_failed",
            "The server's certificate or TLS handshake is not valid.",
            "Check the site's certificate; nothing is fetched without a valid one.",
        )
    if is_refused(error):
        return TargetBusy("The server refuses connections.")
    if is_reset(error):
        return TargetBusy("The server resets connections.")
    if is_oversized(error):
        return too_large("The response's headers are too large.")
    import httpcore2

    if isinstance(error, httpcore2.ConnectError):
        return TargetFailed("connect_failed", "The server cannot be reached.", "Check the address and port.")
    return TargetFailed("connect_failed", "The server broke the connection off.", "Try it again later.")
