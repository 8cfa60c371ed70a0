"""The guard against server-side request forgery: every URL, and every address a name resolves to, passes here first."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Protocol

import idna

from sift.content.addresses import (
    DEFAULT_PORTS,
    AllowEntry,
    IPAddress,
    is_allowed,
    parse_address,
)
from sift.errors import TargetFailed

MAX_URL_CHARS = 8192  # what common servers accept (Apache 8,190 a request line)
MAX_ANSWERS = 64

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ufeff]")
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?")
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{0,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")  # WHATWG "ends in a number"
_QUAD = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_UNSAFE = re.compile(r"[^\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e%]")

# RFC 6761, 6762, 7686, 8375, 9476 and what private networks use; `test` and `invalid` do no harm: their answers
# are checked like any other.
_SPECIAL_NAMES = (
    *("localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan"),
    *("home.arpa", "in-addr.arpa", "ip6.arpa", "onion", "alt"),
)


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
    """Turns a host name into all of its addresses; raises OSError when there are none."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Answer every address of `host`, IPv4 and IPv6, in the order to try."""
        ...


class SystemResolver:
    """The operating system's resolver, on threads of its own (a slow name must not starve the loop's other work)."""

    def __init__(self, threads: int = 8) -> None:
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
        raise _invalid(f"The URL is longer than {MAX_URL_CHARS} characters.")
    if _FORBIDDEN.search(url):
        raise _invalid("The URL holds a space, a control character or a backslash.")
    match = _URL.match(url)
    if match is None:
        raise _invalid("The URL is not absolute.")
    scheme = match["scheme"].lower()
    if scheme not in ("http", "https"):
        raise _invalid("Only http and https can be fetched.")
    if "@" in match["authority"]:
        raise _invalid("The URL carries a user name.")
    parts = _AUTHORITY.fullmatch(match["authority"])
    if parts is None or "%" in match["authority"]:
        raise _invalid("The URL has no valid host.")
    host, address = _read_host(parts["host"])
    port = int(parts["port"]) if parts["port"] else _default_port(scheme)
    if port not in ports:
        raise blocked()
    target = _escape((match["path"] or "/") + (match["query"] or ""))
    checked = CheckedUrl("", scheme, host, port, target, address)
    return CheckedUrl(f"{scheme}://{checked.authority}{target}", scheme, host, port, target, address)


def check_addresses(answers: Sequence[str], port: int, allow: Sequence[AllowEntry] = ()) -> list[IPAddress]:
    """Judge every answer of a resolver; one bad answer refuses the name (TargetFailed blocked_address)."""
    addresses = [parse_address(answer) for answer in answers[:MAX_ANSWERS]]
    checked = [address for address in addresses if address is not None and is_allowed(address, port, allow)]
    if len(checked) != len(answers) or not checked:
        raise blocked()
    return checked


class Guard:
    """`check_url` and `check_addresses` with one allow list and one resolver.

    The allow list opens exactly its rows; special-use names stay closed whatever it says.
    """

    def __init__(self, resolver: Resolver, allow: Sequence[AllowEntry] = ()) -> None:
        self._resolver = resolver
        self._allow = tuple(allow)
        self._ports = DEFAULT_PORTS | {entry.port for entry in self._allow if entry.port is not None}

    async def admit(self, url: str) -> tuple[CheckedUrl, list[IPAddress]]:
        """Check a URL and resolve its host once: the addresses that may be connected to, in order.

        Raises TargetFailed invalid_url, blocked_address or dns_failed.
        """
        checked = check_url(url, self._ports)
        if checked.address is not None:
            return checked, check_addresses([checked.host], checked.port, self._allow)
        try:
            answers = await self._resolver.resolve(checked.host, checked.port)
        except (OSError, UnicodeError):
            answers = []
        if not answers:
            raise TargetFailed("dns_failed", "The host name does not resolve.", "Check the spelling of the host.")
        return checked, check_addresses(answers, checked.port, self._allow)


def blocked() -> TargetFailed:
    """The one refusal for every address, name or port that is not open: it tells nothing about what is there."""
    return TargetFailed("blocked_address", "The address is not allowed.", "Only public web addresses are fetched.")


def _invalid(detail: str) -> TargetFailed:
    return TargetFailed("invalid_url", detail, "Send an absolute http or https URL, percent-encoded.")


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _read_host(text: str) -> tuple[str, IPAddress | None]:
    if text.startswith("["):
        try:
            address = IPv6Address(text[1:-1])
        except ValueError as error:
            raise _invalid("The URL has no valid host.") from error
        return str(address), address
    host = _encode_host(text)
    if _NUMERIC.fullmatch(host.rpartition(".")[2]):
        if not _QUAD.fullmatch(host):
            raise blocked()
        try:
            quad = IPv4Address(host)
        except ValueError as error:
            raise _invalid("The URL has no valid host.") from error
        return host, quad
    if "." not in host or any(host == name or host.endswith("." + name) for name in _SPECIAL_NAMES):
        raise blocked()
    return host, None


def _encode_host(text: str) -> str:
    """IDNA by UTS 46, then one trailing dot off; an ASCII name may hold underscores, as some real ones do."""
    host = text.lower()
    if not host.isascii() or "xn--" in host:
        try:
            host = idna.encode(text, uts46=True).decode("ascii").lower()
        except (idna.IDNAError, UnicodeError) as error:
            raise _invalid("The host name is not valid.") from error
    host = host.removesuffix(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise _invalid("The host name is not valid.")
    return host


def _escape(target: str) -> str:
    """Percent-encode what may not stand in a request line; what is encoded already stays as it is."""
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), target)
