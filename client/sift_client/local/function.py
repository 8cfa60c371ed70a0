"""A Lambda function: its warm environments, its concurrency and its payload limits."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sift_client.local.blueprint import FunctionSpec
from sift_client.local.environment import Environment, EnvironmentDied, process_variables

PAYLOAD_BYTES = 6 * 1024 * 1024  # Lambda quotas: synchronous invocation, request and response each
RESPONSE_BYTES = 6291556  # what Lambda itself names as the limit of a response in its error
EVENT_BYTES = 1024 * 1024  # Lambda quotas: asynchronous invocation


class InvokeRefused(Exception):
    """Lambda's API would not start the invocation; `code` is the error's name and `status` its HTTP status."""

    code = ""
    status = 0


class Throttled(InvokeRefused):
    """No concurrency is left."""

    code, status = "TooManyRequestsException", 429


class RequestTooLarge(InvokeRefused):
    """The event is larger than Lambda takes."""

    code, status = "RequestTooLargeException", 413


class Stopped(InvokeRefused):
    """The stack is shutting down."""

    code, status = "ServiceException", 500


@dataclass(frozen=True)
class Outcome:
    """How an invocation ended: the JSON text of its answer or of its error."""

    payload: str
    failed: bool
    request_id: str

    @property
    def value(self) -> Any:
        """The answer or error as data."""
        return json.loads(self.payload)


def check_payload(event: str, limit: int) -> None:
    """Raises RequestTooLarge for an event of more than `limit` bytes."""
    size = len(event.encode())
    if size > limit:
        raise RequestTooLarge(f"{size} byte payload is too large for the invocation type (limit {limit} bytes)")


class Concurrency:
    """How many invocations may run at once; shared by all functions that reserve none."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._running = 0
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Takes a place or raises Throttled."""
        with self._lock:
            if self._running >= self.limit:
                raise Throttled("Rate Exceeded.")
            self._running += 1

    def leave(self) -> None:
        """Gives the place back."""
        with self._lock:
            self._running -= 1


class Function:
    """Runs a function's events in as many environments as run at once; an idle one is used again, latest first."""

    def __init__(self, spec: FunctionSpec, aws_url: str, log: Path, account: Concurrency) -> None:
        self.spec = spec
        self.log = log
        self._variables = process_variables(spec, aws_url)
        self._concurrency = account if spec.reserved is None else Concurrency(spec.reserved)
        self._changed = threading.Condition()
        self._idle: list[Environment] = []
        self._busy: set[Environment] = set()
        self._starting = 0
        self._stopped = False

    def invoke(self, event: str, request_id: str | None = None) -> Outcome:
        """Runs one event (JSON text) to its end.

        Raises Throttled, RequestTooLarge or Stopped when it never starts; every other end is an Outcome.
        """
        check_payload(event, PAYLOAD_BYTES)
        request_id = request_id or str(uuid.uuid4())
        self._concurrency.enter()
        try:
            environment = self._take()
            try:
                answer = environment.invoke(event, request_id)
            except EnvironmentDied as death:
                self._give_back(environment, alive=False)
                self._note(str(death))
                return Outcome(json.dumps(death.error), True, request_id)
            self._give_back(environment, alive=True)
        finally:
            self._concurrency.leave()
        if "error" in answer:
            return Outcome(json.dumps(answer["error"]), True, request_id)
        size = len(answer["payload"].encode())
        if size > RESPONSE_BYTES:
            error = {
                "errorType": "Function.ResponseSizeTooLarge",
                "errorMessage": f"Response payload size ({size} bytes) exceeded maximum allowed payload size "
                f"({RESPONSE_BYTES} bytes).",
            }
            self._note(error["errorMessage"])
            return Outcome(json.dumps(error), True, request_id)
        return Outcome(answer["payload"], False, request_id)

    def pids(self) -> list[int]:
        """Process ids of the living environments, busy ones first."""
        with self._changed:
            return [environment.pid for environment in [*self._busy, *self._idle]]

    def wait_idle(self, seconds: float, hurry: Callable[[], bool]) -> bool:
        """Waits until nothing runs, at most `seconds` and only while not `hurry()`; says whether nothing runs."""
        with self._changed:
            waited = 0.0
            while (self._busy or self._starting) and waited < seconds and not hurry():
                self._changed.wait(0.1)
                waited += 0.1
            return not (self._busy or self._starting)

    def close(self) -> None:
        """Ends every environment; what still runs ends as a death."""
        with self._changed:
            self._stopped = True
            idle, busy = self._idle, list(self._busy)
            self._idle = []
        for environment in idle:
            environment.close()
        for environment in busy:
            # Its invocation's thread sees the end and cleans up.
            environment.kill()

    def _take(self) -> Environment:
        with self._changed:
            if self._stopped:
                raise Stopped("the stack is shutting down")
            if self._idle:
                environment = self._idle.pop()
                self._busy.add(environment)
                return environment
            self._starting += 1
        try:
            environment = Environment(self.spec, self._variables, self.log)
        finally:
            with self._changed:
                self._starting -= 1
        with self._changed:
            self._busy.add(environment)
        return environment

    def _give_back(self, environment: Environment, alive: bool) -> None:
        with self._changed:
            self._busy.discard(environment)
            keep = alive and not self._stopped
            if keep:
                self._idle.append(environment)
            self._changed.notify_all()
        if not keep:
            environment.close()

    def _note(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8") as output:
            output.write(text + "\n")
