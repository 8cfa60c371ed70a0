"""One HTTP exchange over a connection that can only go to addresses the guard has admitted."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import httpcore2

from sift.content.addresses import IPAddress
from sift.content.guard import CheckedUrl
from sift.content.phases import PhaseTimeouts, Progress

MAX_TRIED_ADDRESSES = 4


class _PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the admitted addresses, whatever host it is asked for; no name is looked up a second time."""

    def __init__(self, addresses: Sequence[IPAddress]) -> None:
        self._addresses = addresses[:MAX_TRIED_ADDRESSES]
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Open a stream to the first admitted address that answers."""
        share = None if timeout is None else timeout / len(self._addresses)
        failure: Exception | None = None
        for address in self._addresses:
            try:
                return await self._network.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError("no address")

    async def sleep(self, seconds: float) -> None:
        """Wait, as the pool asks between tries."""
        await self._network.sleep(seconds)


@asynccontextmanager
async def exchange(
    url: CheckedUrl,
    addresses: Sequence[IPAddress],
    headers: Sequence[tuple[bytes, bytes]],
    tls: ssl.SSLContext | None,
    timeouts: PhaseTimeouts,
    progress: Progress,
    content: bytes | None = None,
) -> AsyncIterator[httpcore2.Response]:
    """GET `url`, or POST `content` to it; yields the response with its body still unread. `tls` is for https alone.

    Raises httpcore2's errors.

    Every exchange has a connection of its own, closed at its end: no request can ride on a connection
    that was admitted for another one. Host, SNI and the certificate's name stay those of the URL.
    """
    request = httpcore2.Request(
        "GET" if content is None else "POST",
        httpcore2.URL(
            scheme=url.scheme.encode(),
            host=f"[{url.host}]".encode() if ":" in url.host else url.host.encode(),
            port=url.port,
            target=url.target.encode(),
        ),
        headers=[(b"Host", url.authority.encode()), *headers],
        content=content,
        extensions={
            "timeout": {"connect": timeouts.connect, "read": timeouts.read, "write": timeouts.write, "pool": None},
            "sni_hostname": url.host,
            "trace": progress.note,
        },
    )
    async with httpcore2.AsyncConnectionPool(
        ssl_context=tls, http1=True, http2=True, max_connections=1, network_backend=_PinnedBackend(addresses)
    ) as pool:
        try:
            response = await pool.handle_async_request(request)
        except ValueError as error:  # a status over HTTP/2 that is no number
            raise httpcore2.RemoteProtocolError(error) from error
        progress.phase = "body"
        try:
            yield response
        except Exception as error:
            if _is_of_h2(error):  # its errors come through while a body is read
                raise httpcore2.RemoteProtocolError(error) from error
            raise
        finally:
            await response.aclose()


def _is_of_h2(error: Exception) -> bool:
    from h2.exceptions import H2Error  # not before an exchange has failed: plain HTTP/1.1 needs none of it

    return isinstance(error, H2Error)
