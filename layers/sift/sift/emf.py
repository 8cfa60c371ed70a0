"""Metrics as CloudWatch's embedded metric format: lines in the function's log that CloudWatch turns into metrics.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sift import metrics
from sift.metrics import Metric

if TYPE_CHECKING:
    from aws_lambda_powertools.metrics import EphemeralMetrics

Handler = Callable[[dict[str, Any], Any], Any]


class EmfSink:
    """Gathers the measurements of one invocation; a metric's label is its dimension beside `service`."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[str, str] | None, EphemeralMetrics] = {}

    def __call__(self, metric: Metric, value: float, label: str | None) -> None:
        dimension = None if metric.label is None else (metric.label, label or "other")
        gathered = self._gathered.get(dimension)
        if gathered is None:
            from aws_lambda_powertools.metrics import EphemeralMetrics  # most requests measure nothing

            # Namespace and service come from the environment, see the template.
            gathered = self._gathered[dimension] = EphemeralMetrics()
            if dimension is not None:
                gathered.add_dimension(*dimension)
        gathered.add_metric(name=metric.name, unit=metric.unit, value=value)

    def flush(self) -> None:
        """Print what was gathered, one line for each dimension."""
        gathered, self._gathered = self._gathered, {}
        for one in gathered.values():
            if one.metric_set:  # full sets have been printed already
                one.flush_metrics()


def published(handler: Handler) -> Handler:
    """The handler, with what it measures printed at its end, whatever that is."""
    sink = EmfSink()

    @functools.wraps(handler)
    def measured(event: dict[str, Any], context: Any) -> Any:
        metrics.send_to(sink)
        try:
            return handler(event, context)
        finally:
            metrics.send_to(None)
            sink.flush()

    return measured
