"""What the services count. As with logging, where it goes is decided elsewhere: nowhere, unless `send_to` says so.

Metrics are seen from a process: what is lost with it is lost to them. The table is the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Unit = Literal["Count", "Milliseconds", "Seconds", "Bytes"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric by its CloudWatch name and unit; `label` is the one dimension that it is split by, if any."""

    name: str
    unit: Unit = "Count"
    label: str | None = None


JOBS_CREATED = Metric("JobsCreated")
JOBS_REUSED = Metric("JobsReused")
JOBS_REFUSED = Metric("JobsRefused", label="code")
JOBS_ENDED = Metric("JobsEnded", label="status")
JOB_TIME = Metric("JobTime", "Seconds")
TARGETS_ENDED = Metric("TargetsEnded", label="status")
TARGET_ERRORS = Metric("TargetErrors", label="code")
TARGET_TIME = Metric("TargetTime", "Milliseconds")
RESULT_BYTES = Metric("ResultBytes", "Bytes")
BUSY_RETRIES = Metric("BusyRetries")
LIVE_JOBS = Metric("LiveJobs")
TARGETS_RUNNING = Metric("TargetsRunning")
REPAIRS = Metric("Repairs", label="repair")
REQUEST_FAULTS = Metric("RequestFaults", label="code")
WEBHOOK_POSTS = Metric("WebhookPosts", label="result")

ALL = (
    JOBS_CREATED, JOBS_REUSED, JOBS_REFUSED, JOBS_ENDED, JOB_TIME, TARGETS_ENDED, TARGET_ERRORS, TARGET_TIME,
    RESULT_BYTES, BUSY_RETRIES, LIVE_JOBS, TARGETS_RUNNING, REPAIRS, REQUEST_FAULTS,
    WEBHOOK_POSTS,
)  # fmt: skip

#: Takes the metric, its value, and the value of its label.
Sink = Callable[[Metric, float, str | None], None]

_sink: Sink | None = None


def send_to(sink: Sink | None) -> None:
    """From now on this is where metrics go."""
    global _sink
    _sink = sink


def add(metric: Metric, value: float = 1, label: str | None = None) -> None:
    """One measurement. `label` must be one of a few fixed words, since each makes a metric of its own."""
    if _sink is not None:
        _sink(metric, value, label)
