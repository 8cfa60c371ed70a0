"""How often and how many at once a host may be asked: tickets, the times at which they may go, and lanes.

Tickets of a host are numbered, and go one `interval` after the other. Ticket `n` runs in lane `n mod concurrency`, so
that the one before it in its lane went `span` = concurrency x interval earlier. One that takes longer than its span
holds its lane until it ends; whose lane is held takes another ticket. Where a host's requests are slow as a rule, its
tickets are further apart, by its `spacing`, and their spans longer. See docs/decisions/0034.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from urllib.parse import urlsplit

#: Every request has this long (ms) before it is a slow one: what is written down for a slow one takes its time too.
LEAST_SPAN_MS = 1_000


@dataclass(frozen=True, slots=True)
class PaceLimits:
    """Requests per second to one host, and how many of them at once."""

    rate: float
    concurrency: int

    @property
    def interval_ms(self) -> int:
        """From one start to the next, rounded up."""
        return max(1, math.ceil(1000 / self.rate))

    @property
    def span_ms(self) -> int:
        """What a request may take without another being held up by it."""
        return self.interval_ms * self.concurrency

    def check(self) -> None:
        """Raises ValueError where requests would have no time: `concurrency` below `rate`, both per second."""
        if self.rate <= 0 or self.concurrency < 1 or self.span_ms < LEAST_SPAN_MS:
            raise ValueError(f"{self.concurrency} at once are too few for {self.rate:g} a second")


@dataclass(frozen=True, slots=True)
class Pace:
    """A host's item. `next_at`: when the next ticket may go; `issued`: tickets so far; `after`: nobody goes before, as
    the host asked for; `holds`: until when a lane is held at most; `spacing`: how far apart its tickets are, where that
    is more than the interval of its limits, else 0. Times in milliseconds."""

    next_at: int = 0
    issued: int = 0
    after: int = 0
    holds: Mapping[int, int] = field(default_factory=dict)
    spacing: int = 0

    def held(self, lane: int, now_ms: int) -> bool:
        """Whether a slow request still runs in the lane."""
        return self.holds.get(lane, 0) > now_ms


@dataclass(frozen=True, slots=True)
class Slot:
    """A ticket: it may go at this time (ms), in this lane. `span`: what it may take (ms); 0: the span of the limits."""

    at: int
    lane: int
    span: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """A change of the host's item that takes `tickets` of them. `queue`: behind others; else from `base` on, as nobody
    waits. `exact`: only if the item has issued what was seen. `was`, `spacing`: the spacing that was seen, on condition
    that it still is so, and the one from now on."""

    tickets: int
    queue: bool
    base: int
    interval_ms: int
    exact: int | None
    was: int = 0
    spacing: int = 0


def plan(seen: Pace, count: int, now_ms: int, limits: PaceLimits, wanted_ms: int | None = None) -> Claim | None:
    """What to ask for when `count` tickets in free lanes are wanted, so far apart or, with None, as far as before.
    None: every lane is held."""
    before = max(limits.interval_ms, seen.spacing)
    interval = before if wanted_ms is None else max(limits.interval_ms, wanted_ms)
    spacing = interval if interval > limits.interval_ms else 0
    base = max(now_ms, seen.after)
    exact = None
    if interval < before:
        # Each of the last tickets was promised the longer span: the first one in the last of their lanes goes after it.
        base, exact = max(base, seen.next_at + (limits.concurrency - 1) * (before - interval)), seen.issued
    queue = seen.next_at > base
    held = {lane for lane in range(limits.concurrency) if seen.held(lane, now_ms)}
    if len(held) == limits.concurrency:
        return None
    if not held:
        return Claim(count, queue, base, interval, exact, seen.spacing, spacing)
    tickets, found = 0, 0
    while found < count:
        found += (seen.issued + tickets) % limits.concurrency not in held
        tickets += 1
    return Claim(tickets, queue, base, interval, seen.issued, seen.spacing, spacing)


def slots(after: Pace, claim: Claim, now_ms: int, limits: PaceLimits) -> list[Slot]:
    """The slots that a claim got, from the item as it left it; those in lanes that are held by now, or before the time
    that the host asked for, are left out."""
    first = after.issued - claim.tickets
    start = after.next_at - claim.tickets * claim.interval_ms
    all_slots = [
        Slot(
            start + number * claim.interval_ms,
            (first + number) % limits.concurrency,
            claim.spacing * limits.concurrency,
        )
        for number in range(claim.tickets)
    ]
    return [slot for slot in all_slots if slot.at >= after.after and not after.held(slot.lane, now_ms)]


def host_of(url: str) -> str | None:
    """The host that a URL is paced by, in the one spelling that is asked; None where it has none that could be."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return None
    host = (host or "").lower()
    if ":" in host:
        try:
            address = IPv6Address(host)
        except ValueError:
            return None
        return str(address.ipv4_mapped or address)
    if not host.isascii():
        import idna

        try:
            host = idna.encode(host, uts46=True).decode("ascii").lower()  # as the guard does
        except (idna.IDNAError, UnicodeError):
            return None
    host = host.rstrip(".")
    return host if 0 < len(host) <= 253 else None
