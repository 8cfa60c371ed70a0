"""The guard against server-side request forgery: every URL, and every address a name resolves to, passes here first."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from sift.content.addresses import (
    DEFAULT_PORTS,
    AllowEntry,
    IPAddress,
    is_allowed,
    parse_address,
)
from sift.content.denials import DenyList
from sift.content.hosts import blocked, invalid, read_host
from sift.errors import TargetBusy, TargetFailed

MAX_URL_CHARS = 8192  # what common servers accept (Apache 8,190 a request line)
MAX_ANSWERS = 64

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ufeff]")
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?")
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{0,5}))?")
_UNSAFE = re.compile(r"[^\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e%]")


@dataclass(frozen=True)
class CheckedUrl:
    """A URL in the one spelling that is sent: ASCII, lower-case host, no fragment, no default port.

    `host` is a name or a canonical address without brackets; `address` is set when it is an address.
    `target` is path and query.
    """

    url: str
    scheme: str
    host: str
    port: int
    target: str
    address: IPAddress | None

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(self.scheme) else f"{host}:{self.port}"


class Resolver(Protocol):
    """Turns a host name into all of its addresses.

    Raises OSError when there are none; a gaierror of EAI_AGAIN says that the name server could not tell.
    """

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Answer every address of `host`, IPv4 and IPv6, in the order to try."""
        ...


class SystemResolver:
    """The operating system's resolver, on threads of its own (a slow name must not starve the loop's other work).

    A look-up can't be ended, so one that was given up still holds its thread: `threads` is some batches of ten.
    """

    def __init__(self, threads: int = 32) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="resolve")

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Answer every address of `host`; OSError when the name does not resolve."""
        loop = asyncio.get_running_loop()
        answers = await loop.run_in_executor(self._threads, _look_up, host, port)
        return list(dict.fromkeys(answers))

    def close(self) -> None:
        """Let the threads go, without waiting for an answer that is still due."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    # The final dot keeps the machine's search list out of it.
    return [str(row[4][0]) for row in socket.getaddrinfo(f"{host}.", port, type=socket.SOCK_STREAM)]


def check_url(url: str, ports: Collection[int] = DEFAULT_PORTS) -> CheckedUrl:
    """Read a URL strictly; raises TargetFailed invalid_url or blocked_address. An address is not judged here."""
    if len(url) > MAX_URL_CHARS:
        raise invalid(f"The URL is longer than {MAX_URL_CHARS} characters.")
    if _FORBIDDEN.search(url):
        raise invalid("The URL holds a space, a control character or a backslash.")
    match = _URL.match(url)
    if match is None:
        raise invalid("The URL is not absolute.")
    scheme = match["scheme"].lower()
    if scheme not in ("http", "https"):
        raise invalid("Only http and https can be fetched.")
    if "@" in match["authority"]:
        raise invalid("The URL carries a user name.")
    parts = _AUTHORITY.fullmatch(match["authority"])
    if parts is None or "%" in match["authority"]:
        raise invalid("The URL has no valid host.")
    host, address = read_host(parts["host"])
    port = int(parts["port"]) if parts["port"] else _default_port(scheme)
    if port not in ports:
        raise blocked()
    target = _escape((match["path"] or "/") + (match["query"] or ""))
    checked = CheckedUrl("", scheme, host, port, target, address)
    return CheckedUrl(f"{scheme}://{checked.authority}{target}", scheme, host, port, target, address)


def check_addresses(
    answers: Sequence[str], port: int, allow: Sequence[AllowEntry] = (), deny: DenyList | None = None
) -> list[IPAddress]:
    """Judge every answer of a resolver; one bad answer refuses the name (TargetFailed blocked_address)."""
    addresses = [parse_address(answer) for answer in answers[:MAX_ANSWERS]]
    checked = [address for address in addresses if address is not None and is_allowed(address, port, allow)]
    if len(checked) != len(answers) or not checked:
        raise blocked()
    if deny is not None and any(deny.has_address(address) for address in checked):
        raise blocked()
    return checked


class Guard:
    """`check_url` and `check_addresses` with one allow list, one deny list and one resolver.

    The allow list opens exactly its rows; special-use names stay closed whatever it says, and the deny list wins
    over it.
    """

    def __init__(self, resolver: Resolver, allow: Sequence[AllowEntry] = (), deny: DenyList | None = None) -> None:
        self._resolver = resolver
        self._allow = tuple(allow)
        self._deny = deny or DenyList()
        self._ports = DEFAULT_PORTS | {entry.port for entry in self._allow if entry.port is not None}

    def check(self, url: str) -> CheckedUrl:
        """Check a URL without resolving its host; raises TargetFailed invalid_url or blocked_address."""
        return check_url(url, self._ports)

    def foresee(self, url: str) -> CheckedUrl:
        """`admit` as far as it goes without resolving: what is refused here never gets through."""
        checked = check_url(url, self._ports)
        if checked.address is not None:
            check_addresses([checked.host], checked.port, self._allow, self._deny)
        elif self._deny.has_name(checked.host):
            raise blocked()
        return checked

    async def admit(self, url: str) -> tuple[CheckedUrl, list[IPAddress]]:
        """Check a URL and resolve its host once: the addresses that may be connected to, in order.

        Raises TargetFailed invalid_url, blocked_address or dns_failed, and TargetBusy when the name server is away.
        """
        checked = self.foresee(url)
        if checked.address is not None:
            return checked, [checked.address]
        try:
            answers = await self._resolver.resolve(checked.host, checked.port)
        except socket.gaierror as error:
            if error.errno == socket.EAI_AGAIN:
                raise TargetBusy("The name server did not answer.") from error
            answers = []
        except (OSError, UnicodeError):
            answers = []
        if not answers:
            raise TargetFailed("dns_failed", "The host name does not resolve.", "Check the spelling of the host.")
        return checked, check_addresses(answers, checked.port, self._allow, self._deny)


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _escape(target: str) -> str:
    """Percent-encode what may not stand in a request line; what is encoded already stays as it is."""
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), target)
