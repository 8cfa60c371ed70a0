"""Reads the host of a URL the way browsers do, and refuses whatever two parsers might read differently."""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address

import idna

from sift.content.addresses import IPAddress
from sift.errors import TargetFailed

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")  # WHATWG "ends in a number"
_QUAD = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")

# RFC 6761, 6762, 7686, 8375, 9476 and what private networks use; `test` and `invalid` do no harm: their answers
# are checked like any other.
_SPECIAL_NAMES = (
    *("localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan"),
    *("home.arpa", "in-addr.arpa", "ip6.arpa", "onion", "alt"),
)


def read_host(text: str) -> tuple[str, IPAddress | None]:
    """The host as it is sent, and its address when it is one: canonical, without brackets or a final dot.

    Raises TargetFailed invalid_url, or blocked_address for single labels, special names and short forms of addresses.
    """
    if text.startswith("["):
        try:
            address = IPv6Address(text[1:-1])
        except ValueError as error:
            raise invalid("The URL has no valid host.") from error
        return str(address), address
    host = encode_name(text)
    if _NUMERIC.fullmatch(host.rpartition(".")[2]):
        if not _QUAD.fullmatch(host):
            raise blocked()
        try:
            quad = IPv4Address(host)
        except ValueError as error:
            raise invalid("The URL has no valid host.") from error
        return host, quad
    if "." not in host or is_within(host, _SPECIAL_NAMES):
        raise blocked()
    return host, None


def encode_name(text: str) -> str:
    """IDNA by UTS 46, then one trailing dot off; an ASCII name may hold underscores, as some real ones do.

    Raises TargetFailed invalid_url.
    """
    host = text.lower()
    if not host.isascii() or "xn--" in host:
        # A character that this Python's Unicode does not know is one that parsers of another age read differently.
        if any(unicodedata.category(character) == "Cn" for character in text):
            raise invalid("The host name is not valid.")
        try:
            host = idna.encode(text, uts46=True).decode("ascii").lower()
        except (idna.IDNAError, UnicodeError) as error:
            raise invalid("The host name is not valid.") from error
    host = host.removesuffix(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise invalid("The host name is not valid.")
    return host


def is_within(host: str, names: tuple[str, ...] | frozenset[str]) -> bool:
    """Say whether `host` is one of `names` or below one of them."""
    labels = host.split(".")
    return any(".".join(labels[start:]) in names for start in range(len(labels)))


def blocked() -> TargetFailed:
    """The one refusal for every address, name or port that is not open: it tells nothing about what is there."""
    return TargetFailed("blocked_address", "The address is not allowed.", "Only public web addresses are fetched.")


def invalid(detail: str) -> TargetFailed:
    """The refusal of what is no URL that can be fetched."""
    return TargetFailed("invalid_url", detail, "Send an absolute http or https URL, percent-encoded.")
