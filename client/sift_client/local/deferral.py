"""Asynchronous invocation: events wait in a line of their own and are tried again, as Lambda does."""

from __future__ import annotations

import heapq
import itertools
import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sift_client.local.function import EVENT_BYTES, Function, Outcome, Stopped, Throttled, check_payload

# Lambda: a minute before the first retry of an event that failed, two before the second.
RETRY_SECONDS = (60.0, 120.0)
THROTTLE_SECONDS = (1.0, 300.0)  # Lambda: from a second up to five minutes between tries of a throttled event


@dataclass(order=True)
class _Waiting:
    due: float
    number: int
    function: Function = field(compare=False)
    event: str = field(compare=False)
    request_id: str = field(compare=False)
    since: float = field(compare=False)
    attempts: int = field(compare=False, default=0)
    throttles: int = field(compare=False, default=0)


class Deferral:
    """Runs events at once and in any number; `speed` divides the pauses between tries.

    `bury` takes the ARN of a function's on-failure destination and the record of an event that failed for good.
    """

    def __init__(self, speed: float = 1.0, bury: Callable[[str, str], None] | None = None) -> None:
        self._bury = bury
        self._speed = speed
        self._numbers = itertools.count()
        self._line: list[_Waiting] = []
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="deferral", daemon=True)

    def start(self) -> None:
        """Begins to run events."""
        self._thread.start()

    def submit(self, function: Function, event: str) -> str:
        """Takes an event (JSON text) and gives its request id; raises RequestTooLarge over 1 MB."""
        check_payload(event, EVENT_BYTES)
        now = time.monotonic()
        waiting = _Waiting(now, next(self._numbers), function, event, str(uuid.uuid4()), now)
        self._push(waiting)
        return waiting.request_id

    def stop(self) -> int:
        """Starts no more events; gives the number of those that were still waiting."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        return len(self._line)

    def _push(self, waiting: _Waiting) -> None:
        with self._changed:
            heapq.heappush(self._line, waiting)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._stopping and (not self._line or self._line[0].due > time.monotonic()):
                    self._changed.wait(self._line[0].due - time.monotonic() if self._line else None)
                if self._stopping:
                    return
                waiting = heapq.heappop(self._line)
            threading.Thread(target=self._try, args=(waiting,), daemon=True).start()

    def _try(self, waiting: _Waiting) -> None:
        spec = waiting.function.spec
        outcome = None
        try:
            outcome = waiting.function.invoke(waiting.event, waiting.request_id)
        except Stopped:
            return
        except Throttled:
            low, high = THROTTLE_SECONDS
            pause = min(low * 2.0**waiting.throttles, high) / self._speed
            waiting.throttles += 1
        else:
            if not outcome.failed:
                return
            if waiting.attempts >= spec.retries:
                self._give_up(waiting, "RetriesExhausted", outcome)
                return
            pause = RETRY_SECONDS[waiting.attempts] / self._speed
            waiting.attempts += 1
        waiting.due = time.monotonic() + pause
        if waiting.due - waiting.since <= spec.max_age:
            self._push(waiting)
        else:
            self._give_up(waiting, "EventAgeExceeded", outcome)

    def _give_up(self, waiting: _Waiting, condition: str, outcome: Outcome | None) -> None:
        spec = waiting.function.spec
        if spec.on_failure is not None and self._bury is not None:
            self._bury(spec.on_failure, json.dumps(_make_record(waiting, condition, outcome)))


def _make_record(waiting: _Waiting, condition: str, outcome: Outcome | None) -> dict[str, Any]:
    """What Lambda sends to a destination (Lambda developer guide, asynchronous invocation records)."""
    record: dict[str, Any] = {
        "version": "1.0",
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "requestContext": {
            "requestId": waiting.request_id,
            "functionArn": f"{waiting.function.spec.arn}:$LATEST",
            "condition": condition,
            "approximateInvokeCount": waiting.attempts + 1,
        },
        "requestPayload": json.loads(waiting.event),
    }
    if outcome is not None:
        record["responseContext"] = {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"}
        record["responsePayload"] = outcome.value
    return record
