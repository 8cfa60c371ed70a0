"""Schedules of the stack: each fires its function asynchronously at its times."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sift_client.local.blueprint import ScheduleSpec
from sift_client.local.naming import REGION
from sift_client.local.timetable import read_expression


class Schedules:
    """Fires schedules until `stop`; `speed` divides the time between firings."""

    def __init__(
        self, specs: list[ScheduleSpec], account: str, fire: Callable[[str, str], Any], speed: float = 1.0
    ) -> None:
        self._fire = fire
        self._account = account
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(spec, speed), name=spec.name, daemon=True) for spec in specs
        ]

    def start(self) -> None:
        """Begins to count: a rate first fires one period from now, as in EventBridge."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Fires no more."""
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _run(self, spec: ScheduleSpec, speed: float) -> None:
        find_next = read_expression(spec.expression)
        begun, moment = time.monotonic(), datetime.now(UTC)
        start = moment
        while True:
            moment = find_next(moment)
            due = begun + (moment - start).total_seconds() / speed
            if self._stopping.wait(max(0.0, min(due - time.monotonic(), threading.TIMEOUT_MAX))):
                return
            self._fire(spec.function, self._make_input(spec, moment))

    def _make_input(self, spec: ScheduleSpec, moment: datetime) -> str:
        if spec.text is not None:
            return fill_in(spec, spec.text, moment)
        return json.dumps(spec.payload if spec.payload is not None else self._make_event(spec, moment))

    def _make_event(self, spec: ScheduleSpec, moment: datetime) -> dict[str, Any]:
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler" if ":scheduler:" in spec.arn else "aws.events",
            "account": self._account,
            "time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": REGION,
            "resources": [spec.arn],
            "detail": {},
        }


def fill_in(spec: ScheduleSpec, text: str, moment: datetime) -> str:
    """The input of one firing: EventBridge Scheduler puts its context attributes wherever they are named."""
    attributes = {
        "schedule-arn": spec.arn,
        "scheduled-time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "execution-id": str(uuid.uuid4()),
        "attempt-number": "1",
    }
    for name, value in attributes.items():
        text = text.replace(f"<aws.scheduler.{name}>", value)
    return text
