"""Which IP addresses a fetch may connect to: the public internet, less what clouds and transition forms hide in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

IPAddress = IPv4Address | IPv6Address

DEFAULT_PORTS = frozenset({80, 443, 8080, 8443})

# Written out, not `is_global`: that table differs between Python versions (3.13.0 calls 3fff::/20 global).
# Source: IANA IPv4 Special-Purpose Address Registry, less its globally reachable rows.
_CLOSED_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "168.63.129.16/32",  # Azure's wire server: public by its number, the platform's own in fact
    )
)

# Only 2000::/3 is in use as global unicast; everything else (mapped, compatible, NAT64, ULA, link-local,
# multicast) is closed by that alone.
_OPEN_V6 = IPv6Network("2000::/3")
_CLOSED_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # IETF protocol assignments, with Teredo, ORCHID and benchmarking
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",
    )
)
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})  # RFC 5214: the interface identifier carries an IPv4 address


@dataclass(frozen=True)
class AllowEntry:
    """One row of the allow list: a network, and the port it opens (None: the default ports)."""

    network: IPv4Network | IPv6Network
    port: int | None

    def opens(self, address: IPAddress, port: int) -> bool:
        """Say whether this row lets `address` be reached on `port`."""
        if address not in self.network:
            return False
        return port in DEFAULT_PORTS if self.port is None else port == self.port


def parse_allow(text: str) -> tuple[AllowEntry, ...]:
    """Read `address-or-cidr[:port]`, comma-separated, IPv6 in brackets when with a port.

    Raises ValueError that names the bad row.
    """
    entries = []
    for row in filter(None, (part.strip() for part in text.split(","))):
        host, port_text = _split_port(row)
        try:
            port = None if port_text is None else int(port_text)
            network = ip_network(host)
        except ValueError as error:
            raise ValueError(f"allow list: {row!r} is not address-or-cidr[:port]") from error
        if port is not None and not 1 <= port <= 65535:
            raise ValueError(f"allow list: {row!r} has a port outside 1..65535")
        entries.append(AllowEntry(network, port))
    return tuple(entries)


def _split_port(row: str) -> tuple[str, str | None]:
    if row.startswith("["):
        host, bracket, rest = row[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"allow list: {row!r} has an open bracket")
        return host, rest[1:] if rest else None
    if row.count(":") == 1:
        host, _, port = row.partition(":")
        return host, port
    return row, None


def is_public(address: IPAddress) -> bool:
    """Say whether an address belongs to the public internet, by the tables above."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_V4)
    if address.scope_id is not None or address not in _OPEN_V6:
        return False
    if any(address in network for network in _CLOSED_V6):
        return False
    return (int(address) >> 32) & 0xFFFFFFFF not in _ISATAP


def is_allowed(address: IPAddress, port: int, allow: Sequence[AllowEntry] = ()) -> bool:
    """Say whether `address` may be reached on `port`: public on a default port, or opened by a row of `allow`."""
    if port in DEFAULT_PORTS and is_public(address):
        return True
    return any(entry.opens(address, port) for entry in allow)


def parse_address(text: str) -> IPAddress | None:
    """Read a resolver's answer; None when it is no address (a zone id counts as none)."""
    try:
        return ip_address(text)
    except ValueError:
        return None
