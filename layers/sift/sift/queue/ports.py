"""What the services need of the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sift.messages import Message
from sift.notices import Notice


class Sendable(Protocol):
    """What a queue takes, whatever it is for: it says of which job it is, and what its body is."""

    @property
    def job_id(self) -> str: ...

    def encode(self) -> str: ...


class NoticeSender(Protocol):
    """Where notices are sent. Raises Unavailable when the queue does not answer."""

    async def send(self, messages: Sequence[Notice]) -> int:
        """Send all; returns how many were accepted."""
        ...


#: The longest that SQS delays a message, in seconds.
MOST_DELAY = 900


class Sender(Protocol):
    """Where targets are sent. Raises Unavailable when a queue does not answer."""

    async def send(self, messages: Sequence[Message]) -> int:
        """Send all; returns how many were accepted. What was not is repaired by the sweeper."""
        ...


@dataclass(frozen=True, slots=True)
class Received:
    """A message as received: `receives` counts its deliveries."""

    message_id: str
    receipt: str
    body: str
    receives: int = 1

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Received:
        """One record of the batch that Lambda hands to a function."""
        receives = int(record["attributes"]["ApproximateReceiveCount"])
        return cls(record["messageId"], record["receiptHandle"], record["body"], receives)


class Queue(Protocol):
    """One queue. Every method raises Unavailable when the queue does not answer."""

    async def send(self, messages: Sequence[Sendable]) -> int:
        """As Sender, with messages of whatever kind."""
        ...

    async def send_later(self, message: Sendable, seconds: int) -> None:
        """Send one that nobody receives before so many seconds (0 to MOST_DELAY) have passed."""
        ...

    async def set_visibility(self, receipt: str, seconds: int) -> None:
        """Hide a received message for this long (0 to 43,200 s) from now."""
        ...

    async def visible(self) -> int:
        """About how many messages wait to be received, those that were sent for later included."""
        ...


class DeadLetters(Protocol):
    """Where a message goes that no worker can read."""

    async def bury(self, body: str, reason: str) -> None: ...
