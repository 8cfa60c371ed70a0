"""The operator's deny list: hosts that nobody fetches, whatever the internet or the allow list says of them."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network

from sift.content.addresses import IPAddress
from sift.content.hosts import encode_name, is_within
from sift.errors import TargetFailed


@dataclass(frozen=True)
class DenyList:
    """`names` deny themselves and all below them; `networks` deny their addresses, also behind a name."""

    names: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def has_name(self, host: str) -> bool:
        """Say whether a host as `read_host` gives it is denied by its name."""
        return is_within(host, self.names)

    def has_address(self, address: IPAddress) -> bool:
        """Say whether an address is denied, in its own form or mapped into IPv6."""
        forms: list[IPAddress] = [address]
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            forms.append(address.ipv4_mapped)
        return any(form in network for form in forms for network in self.networks)


def parse_deny(text: str) -> DenyList:
    """Read host names, addresses and CIDRs, comma-separated. Raises ValueError that names the bad row."""
    names: set[str] = set()
    networks: list[IPv4Network | IPv6Network] = []
    for row in filter(None, (part.strip() for part in text.split(","))):
        try:
            networks.append(ip_network(row))
            continue
        except ValueError:
            pass
        try:
            name = encode_name(row)
        except TargetFailed:
            name = ""
        # What ends in a number is a mistyped address: as a name it would deny nothing.
        if not name or name.rpartition(".")[2][0].isdigit():
            raise ValueError(f"deny list: {row!r} is no host name, address or CIDR")
        names.add(name)
    return DenyList(frozenset(names), tuple(networks))
