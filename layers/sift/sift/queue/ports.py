"""What the services need of the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

#: The longest that SQS delays a message, in seconds.
MOST_DELAY = 900


class Message(Protocol):
    """What can be sent: a body, and the job that it is about."""

    @property
    def job_id(self) -> str: ...

    def encode(self) -> str: ...


class Queue(Protocol):
    """The queue of one kind of message. Every method raises Unavailable when the queue does not answer."""

    async def send(self, messages: Sequence[Message]) -> int:
        """Send all; returns how many were accepted. What was not is repaired by the sweeper."""
        ...

    async def send_later(self, message: Message, seconds: int) -> None:
        """Send one that nobody receives before so many seconds (0 to MOST_DELAY) have passed."""
        ...

    async def set_visibility(self, receipt: str, seconds: int) -> None:
        """Hide a received message for this long (0 to 43,200 s) from now."""
        ...

    async def visible(self) -> int:
        """About how many messages wait to be received."""
        ...


class DeadLetters(Protocol):
    """Where a message goes that no worker can read."""

    async def bury(self, body: str, reason: str) -> None: ...
