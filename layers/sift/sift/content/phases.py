"""The phases of an exchange: how long each may take, and which one is under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Phase = Literal["dns", "connect", "tls", "headers", "body"]

_STARTS: Mapping[str, Phase] = {
    "connection.connect_tcp.started": "connect",
    "connection.start_tls.started": "tls",
    "http11.send_request_headers.started": "headers",
    "http2.send_connection_init.started": "headers",
}


@dataclass(frozen=True)
class PhaseTimeouts:
    """Seconds for each phase of an exchange; the total deadline is the caller's.

    `connect` is for TCP and again for TLS; `read` is the longest silence before and within an answer.
    """

    dns: float = 10.0
    connect: float = 10.0
    read: float = 20.0
    write: float = 10.0


@dataclass
class Progress:
    """How far an exchange has come: what a timeout is blamed on."""

    phase: Phase = "dns"

    async def note(self, event: str, _: Mapping[str, Any]) -> None:
        """Take in an event of httpcore2's trace."""
        self.phase = _STARTS.get(event, self.phase)
