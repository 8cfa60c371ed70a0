"""The queues of all kinds of target as one to send to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sift.jobs import Kind
from sift.messages import Message
from sift.queue.ports import Sender


class KindQueues:
    """Sends each message to the queue of its kind."""

    def __init__(self, queues: Mapping[Kind, Sender]) -> None:
        self._queues = queues

    async def send(self, messages: Sequence[Message]) -> int:
        accepted = 0
        for kind, queue in self._queues.items():
            if mine := [message for message in messages if message.kind == kind]:
                accepted += await queue.send(mine)
        return accepted
