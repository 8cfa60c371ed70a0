"""The ports in memory, and what the simulator does to them behind the back of the code: receive, delete, lose, look."""

from __future__ import annotations

import functools
import json
import random
from typing import Any

from sift.blobs.memory import MemoryBlobs
from sift.events.memory import MemoryBus
from sift.jobs import Kind
from sift.queue.memory import MemoryQueue
from sift.queue.ports import Received
from sift.specs import Spec, unpack_specs
from sift.store.memory import MemoryStore
from sift.store.ports import Segment, Submission

VISIBILITY_SECONDS = 540
ASSEMBLE_VISIBILITY_SECONDS = 720
#: The least part of an upload: small, so that files of a few targets have several.
PART_BYTES = 20_000
NOTIFY_VISIBILITY_SECONDS = 180


@functools.lru_cache(maxsize=10_000)
def target_of(body: str) -> tuple[str, int]:
    """Which target a message is for."""
    message = json.loads(body)
    return message["job"], message["index"]


class MemoryBackend:
    """`clock` tells the true time."""

    def __init__(self, clock: Any, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self.store: Any = MemoryStore()
        self.queue: Any = MemoryQueue(clock, VISIBILITY_SECONDS)
        self.asks: Any = MemoryQueue(clock, VISIBILITY_SECONDS)  # requests to the model gateway
        self.dead_letters: Any = self.queue
        self.notices = MemoryQueue(clock, NOTIFY_VISIBILITY_SECONDS)
        self.given_up = MemoryQueue(clock)
        self.blobs: Any = MemoryBlobs(PART_BYTES)
        self.assembly: Any = MemoryQueue(clock, ASSEMBLE_VISIBILITY_SECONDS)
        self.bus: Any = MemoryBus()
        self._ahead: dict[str, list[Segment]] = {}

    # the table

    def view(self) -> MemoryStore:
        """The raw table."""
        store: MemoryStore = self.store
        return store

    def refresh(self) -> None:
        """The table may have changed; here the view is the table itself."""

    def contents(self) -> Any:
        """All that is stored, to be compared with what it is later."""
        tables = [
            {key: set(value) if isinstance(value, set) else value for key, value in table.items()}
            for table in vars(self.store).values()
        ]
        listed = {caller: dict(jobs) for caller, jobs in self.store.caller_jobs.items()}
        queue = [
            {receipt: (m.visible_at, m.receives) for receipt, m in queue.waiting.items()}
            for queue in (self.queue, self.asks)
        ]
        return tables, listed, queue, set(self.blobs.blobs), len(self.bus.published), set(self.notices.waiting)

    def urls_of(self, submission: Submission) -> tuple[str, ...]:
        """The targets of a job that was just committed."""
        job_id, urls = submission.meta.job_id, []
        for number in range(-(-submission.state.total // 100)):
            segment = self.view().segments[job_id, number]
            specs = unpack_specs(self.blob(segment.blob)) if segment.blob else segment.specs
            urls += [spec.url if isinstance(spec, Spec) else spec.path for spec in specs]
        return tuple(urls)

    def blob(self, key: str) -> bytes | None:
        found: tuple[bytes, str] | None = self.blobs.blobs.get(key)
        return None if found is None else found[0]

    # the queues

    def queue_of(self, kind: Kind) -> Any:
        return self.queue if kind == "fetch" else self.asks

    def receive(self, kind: Kind, most: int) -> list[Received]:
        """Some visible messages, in any order, hidden for the visibility timeout."""
        now, waiting = self._clock.now_ms(), self.queue_of(kind).waiting
        ready = [receipt for receipt, message in waiting.items() if message.visible_at <= now]
        batch = []
        for receipt in self._rng.sample(ready, min(most, len(ready))):
            message = waiting[receipt]
            message.visible_at = now + VISIBILITY_SECONDS * 1000
            message.receives += 1
            batch.append(Received(receipt, receipt, message.body, message.receives))
        return batch

    def delete(self, kind: Kind, received: Received) -> None:
        self.queue_of(kind).delete(received.receipt)

    def copies(self, target: tuple[str, int]) -> bool:
        """Whether a message of the target is there, hidden or not."""
        waiting = [*self.queue.waiting.values(), *self.asks.waiting.values()]
        return any(target_of(message.body) == target for message in waiting)

    def lose_all(self) -> None:
        self.queue.waiting.clear()
        self.asks.waiting.clear()
        self.assembly.waiting.clear()

    # the queue of the results files

    def receive_assembly(self) -> Received | None:
        """One visible message."""
        now = self._clock.now_ms()
        ready = [receipt for receipt, message in self.assembly.waiting.items() if message.visible_at <= now]
        if not ready:
            return None
        receipt = self._rng.choice(ready)
        message = self.assembly.waiting[receipt]
        message.visible_at = now + ASSEMBLE_VISIBILITY_SECONDS * 1000
        return Received(receipt, receipt, message.body)

    def close(self) -> None:
        """There is nothing to give back."""
