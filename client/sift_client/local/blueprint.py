"""What a stack consists of, in plain records: everything the template says, resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class FunctionSpec:
    """One Lambda function. `layers` holds only folders with Python source; times are in seconds, memory in MB."""

    logical_id: str
    name: str
    arn: str
    handler: str
    code: Path
    layers: tuple[Path, ...]
    environment: dict[str, str]
    timeout: int
    memory: int
    reserved: int | None  # None: shares the account's concurrency
    retries: int  # of an asynchronous invocation that failed
    max_age: int  # of an asynchronous event, in seconds
    on_failure: str | None = None  # ARN of the queue for asynchronous events that failed for good


@dataclass(frozen=True)
class RouteSpec:
    """One route of the HTTP API; `method` may be ANY, `path` may be `$default`."""

    method: str
    path: str
    function: str
    timeout: float | None  # seconds; None: the integration's longest


@dataclass(frozen=True)
class MappingSpec:
    """One SQS event source mapping. `maximum` is its MaximumConcurrency, `window` the batching window in seconds."""

    name: str
    function: str
    queue_arn: str
    batch_size: int
    window: float
    maximum: int | None
    partial: bool  # ReportBatchItemFailures


@dataclass(frozen=True)
class ScheduleSpec:
    """One schedule of a function; `expression` is `rate(...)` or `cron(...)`, `payload` replaces the usual event.

    `text` is the input of an EventBridge Scheduler schedule, in which its context attributes are filled in.
    """

    name: str
    arn: str
    function: str
    expression: str
    payload: Any
    text: str | None = None


@dataclass(frozen=True)
class RuleSpec:
    """One EventBridge rule; `targets` are pairs of an ARN and a constant input (None: the event itself)."""

    name: str
    bus: str
    pattern: dict[str, Any]
    targets: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class TableSpec:
    """One table: the CreateTable request, its TTL attribute and whether it has point-in-time recovery."""

    name: str
    request: dict[str, Any]
    ttl: str | None
    recovery: bool


@dataclass(frozen=True)
class QueueSpec:
    """One queue with its SQS attributes, all text as SQS wants them."""

    name: str
    attributes: dict[str, str]


@dataclass
class Blueprint:
    """A whole stack, and what of its template this stack leaves out.

    `inert` names what is understood but has no effect here; `unknown` names what is not understood.
    """

    functions: dict[str, FunctionSpec] = field(default_factory=dict)
    routes: list[RouteSpec] = field(default_factory=list)
    mappings: list[MappingSpec] = field(default_factory=list)
    schedules: list[ScheduleSpec] = field(default_factory=list)
    rules: list[RuleSpec] = field(default_factory=list)
    tables: dict[str, TableSpec] = field(default_factory=dict)
    queues: dict[str, QueueSpec] = field(default_factory=dict)
    buckets: dict[str, str] = field(default_factory=dict)
    buses: dict[str, str] = field(default_factory=dict)
    inert: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
