"""What becomes of a received message: it is done with, comes back later, or is no message of sift's."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence

from sift import logs
from sift.errors import DataUnreadable, Unavailable
from sift.messages import NotAMessage
from sift.queue.ports import DeadLetters, Queue, Received

#: After a port failed, and for a message of a later version, a message comes back in about this many seconds.
REPEAT_SECONDS = 5
LATER_VERSION_SECONDS = 60
#: SQS hides a message for 12 hours at most.
MOST_SECONDS = 43_200

_log = logging.getLogger(__name__)

#: Works on a message. Returns the seconds until it is to come again, or None when it is done with; raises Unavailable,
#: DataUnreadable or NotAMessage.
Work = Callable[[Received], Awaitable[float | None]]


class Judge:
    """Judges the messages of one queue. `subject` is what they are about, as the log has it, and `repeat_after` how
    many seconds after a port failed one comes back. Without `dead_letters` the queue itself moves what is no message
    of sift's, after some receives."""

    def __init__(
        self, subject: str, queue: Queue, dead_letters: DeadLetters | None, repeat_after: Callable[[Received], float]
    ) -> None:
        self._subject = subject
        self._queue = queue
        self._dead_letters = dead_letters
        self._repeat_after = repeat_after

    async def judge_all(self, batch: Sequence[Received], work: Work) -> list[str]:
        """Work on all at once, whatever becomes of each: what nobody foresaw must not take its batch-mates along.
        Returns the ids of the messages that are to stay on the queue."""
        kept = await asyncio.gather(*(self._guarded(received, work) for received in batch))
        return [received.message_id for received, stays in zip(batch, kept, strict=True) if stays]

    async def _guarded(self, received: Received, work: Work) -> bool:
        with logs.about():
            try:
                return await self.judge(received, work)
            except Exception:  # noqa: BLE001 - it comes back after the queue's own timeout, and the log says why
                logs.add(message_id=received.message_id)
                self.unforeseen()
                return True

    def unforeseen(self) -> None:
        """Called while an exception is handled that no kind of work should raise."""
        _log.exception("%s stays on the queue", self._subject)

    async def judge(self, received: Received, work: Work) -> bool:
        """Work on one message; whether it is to stay on the queue. It is hidden then for as long as it is to wait."""
        try:
            wait = await work(received)
            if wait is None:
                return False
            await self._hide(received, wait)
        except Unavailable as error:
            _log.warning("%s goes back on the queue: %s", self._subject, error.detail)
            await self._put_back(received, self._repeat_after(received))
        except DataUnreadable as error:
            logs.add(message_id=received.message_id)
            _log.error("%s waits for a later version of sift: %s", self._subject, error.detail)
            await self._put_back(received, LATER_VERSION_SECONDS)
        except NotAMessage as error:
            logs.add(message_id=received.message_id)
            return await self._remove(received, error)
        return True

    async def _remove(self, received: Received, reason: NotAMessage) -> bool:
        """See that it gets to the dead-letter queue; whether it stays on its own until then."""
        if self._dead_letters is None:
            _log.error("a message that sift did not write is on its way to the dead-letter queue: %s", reason)
            await self._put_back(received, 0)
            return True
        _log.error("a message that sift did not write was moved to the dead-letter queue: %s", reason)
        try:
            await self._dead_letters.bury(received.body, str(reason))
        except Unavailable:
            return True
        return False

    async def _put_back(self, received: Received, seconds: float) -> None:
        try:
            await self._hide(received, seconds)
        except Unavailable as error:
            _log.warning("the message comes back after the queue's own timeout: %s", error.detail)

    async def _hide(self, received: Received, seconds: float) -> None:
        await self._queue.set_visibility(received.receipt, min(MOST_SECONDS, max(0, math.ceil(seconds))))
