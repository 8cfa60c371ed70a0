"""Sends one request of a job to the operator's model gateway, and spools its response to disk."""

from __future__ import annotations

import asyncio
import logging
import re
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from urllib.parse import quote

import httpx2

from sift.connections import is_broken_off, is_refused, is_tls_failure, is_unanswered, is_unresolved
from sift.errors import TargetBusy, TargetCut, TargetFailed, Unavailable
from sift.gateway import BUSY, Gateway, GatewayFailed, read_retry_after
from sift.model_requests import UpstreamRequest, UpstreamResponse
from sift.usage import Usage

#: Bytes of one response; ten of them at once fit the function's disk.
MAX_RESPONSE_BYTES = 64 * 1024 * 1024

#: The header of each part of a caller's identity.
IDENTITY_HEADERS: Mapping[str, str] = {
    "tenant": "X-Sift-Tenant",
    "actor": "X-Sift-Actor",
    "subject": "X-Sift-Subject",
    "application": "X-Sift-Application",
}
#: Where gateways put their own id of a request: most of them, Anthropic, LiteLLM.
_REQUEST_IDS = ("x-request-id", "request-id", "x-litellm-call-id")
_WORD = re.compile(r"[!-~](?:[ -~]{0,198}[!-~])?")  # printable ASCII, at most 200 characters
_PATH = re.compile(r"/(?!/)[!-\[\]-~]*")  # printable, and no backslash
# What is printable ASCII stays as it is, but for the mark of the encoding itself.
_SAFE = "".join(map(chr, range(0x21, 0x7F))).replace("%", "")

_log = logging.getLogger(__name__)


class Upstream:
    """Talks to one gateway. `folder` is where responses are spooled, None for the system's place for such files."""

    def __init__(self, gateway: Gateway, folder: Path | None = None) -> None:
        self._gateway = gateway
        self._folder = folder

    def send(self, request: UpstreamRequest, seconds: float) -> AbstractAsyncContextManager[UpstreamResponse]:
        """POST the request behind the gateway's root; yields the response when it is all on disk.

        Takes at most `seconds` until then. Being cancelled closes the connection, which is how a gateway learns that
        nobody waits any more. The file has no name, so that nothing is left of it however this ends.

        Raises TargetBusy (429, 503, 529, or no connection could be made), TargetCut (it broke off afterwards),
        TargetFailed (invalid_url, dns_failed, tls_failed, timeout, too_large, damaged), and Unavailable (Secrets
        Manager or Systems Manager did not answer, or the disk is full).
        """
        return self._send(request, seconds)

    @asynccontextmanager
    async def _send(self, request: UpstreamRequest, seconds: float) -> AsyncIterator[UpstreamResponse]:
        url = self._address(request.path)
        # Unbuffered: what a buffer still holds would be written, or not, when nobody looks any more.
        with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
            try:
                async with asyncio.timeout(seconds):
                    response = await self._exchange(url, request, seconds, file)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                raise _explain(error) from error
            except (TimeoutError, httpx2.TimeoutException) as error:
                raise _late(seconds) from error
            except GatewayFailed as error:
                # The operator's to mend: requests wait for it, for as long as they wait for a busy gateway.
                _log.error("the credential of the gateway can't be used: %s", error)
                raise TargetBusy(f"The gateway can't be asked ({error}).") from error
            except httpx2.HTTPError as error:
                raise TargetCut("The gateway broke the connection off before its answer was complete.") from error
            yield response

    def _address(self, path: str) -> str:
        """Behind the root, with nothing in it that would be read in another way than it is written."""
        address = self._gateway.root + path
        try:
            target = httpx2.URL(address).raw_path.decode("ascii")
        except httpx2.InvalidURL:
            target = ""
        if not _PATH.fullmatch(path) or not target.endswith(path) or "#" in path:
            raise TargetFailed("invalid_url", "The path is not valid.", "Send an absolute path, such as /v1/messages.")
        return address

    async def _exchange(self, url: str, request: UpstreamRequest, seconds: float, file: IO[bytes]) -> UpstreamResponse:
        headers = make_headers(request)
        async with self._gateway.post(url, request.body, headers, seconds) as response:
            status = response.status_code
            if status in BUSY:
                raise TargetBusy(
                    f"The gateway answered {status}.", retry_after=read_retry_after(response), status=status
                )
            media_type = _word(response.headers.get("content-type", "")) or "application/octet-stream"
            usage = Usage(media_type if 200 <= status < 300 else "")
            size = await _spool(response, file, usage)
        found = (_word(response.headers.get(name, "")) for name in _REQUEST_IDS)
        file.seek(0)
        return UpstreamResponse(
            status, media_type, size, cast(BinaryIO, file), next(filter(None, found), None), usage.end()
        )


def make_headers(request: UpstreamRequest) -> dict[str, str]:
    """Who asks, as headers: see docs/operations.md. What is not printable ASCII, and `%`, is percent-encoded UTF-8."""
    headers = {"Accept": "*/*", "X-Sift-Service-Class": "batch", "X-Request-Id": _encode(request.request_id)}
    for name, header in IDENTITY_HEADERS.items():
        if value := request.identity.get(name):
            headers[header] = _encode(value)
    return headers


def _encode(value: str) -> str:
    return quote(value.encode("utf-8", "replace"), safe=_SAFE)


async def _spool(response: Any, file: IO[bytes], usage: Usage) -> int:
    """Write the body to disk as it comes; its bytes, decoded where the gateway coded them unasked."""
    length = response.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:15]) > MAX_RESPONSE_BYTES:
        raise _too_large()
    unpack, end = _unpacker(response)
    size = 0
    async for part in response.aiter_raw():
        for piece in unpack(part):
            size += len(piece)
            if size > MAX_RESPONSE_BYTES:
                raise _too_large()
            usage.feed(piece)
            _write(file, piece)
    end()
    return size


def _unpacker(response: Any) -> tuple[Any, Any]:
    """What takes content codings off, and what is to be called at the end."""
    if not response.headers.get("content-encoding"):
        return _as_it_is, lambda: None
    from sift.content.codings import Unpacker  # gateways that code what they are asked not to are few
    from sift.content.responses import read_codings

    unpacker = Unpacker(read_codings(response.headers), MAX_RESPONSE_BYTES)
    return unpacker.feed, unpacker.end


def _as_it_is(part: bytes) -> Iterable[bytes]:
    return (part,)


def _write(file: IO[bytes], piece: bytes) -> None:
    rest = memoryview(piece)
    try:
        while rest:
            rest = rest[file.write(rest) :]  # a disk may take a part of it
    except OSError as error:  # not the network's: whoever catches those must not take it for one
        raise Unavailable("the disk did not take a response") from error


def _word(value: str) -> str | None:
    value = value.strip()
    return value if _WORD.fullmatch(value) else None


def _explain(error: Exception) -> TargetFailed | TargetBusy:
    """Why there was no connection. A gateway that restarts may be away in any way; requests wait for it."""
    if is_refused(error):
        return TargetBusy("The gateway refuses connections.")
    if is_unresolved(error) and not is_unanswered(error):
        hint = "The operator has to look at GatewayUrl."
        return TargetFailed("dns_failed", "The gateway's host has no address.", hint)
    if is_tls_failure(error) and not is_broken_off(error):
        hint = "The gateway needs a certificate of a public authority for the name in GatewayUrl."
        return TargetFailed("tls_failed", "The gateway's certificate or TLS handshake is not valid.", hint)
    return TargetBusy("The gateway can't be reached.")


def _late(seconds: float) -> TargetFailed:
    hint = "Ask for less at once: a request must be answered within the time limit of the function that sends it."
    return TargetFailed("timeout", f"The gateway's answer was not complete after {seconds:.0f} s.", hint)


def _too_large() -> TargetFailed:
    hint = "Ask for less at once, in several requests."
    return TargetFailed("too_large", f"The response is over {MAX_RESPONSE_BYTES} bytes.", hint)
