"""The fetch worker: a batch of targets from the queue, worked on at once."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from sift.bootstrap.workers import worker
from sift.emf import published
from sift.environment import run
from sift.loglines import make_logger, reported
from sift.queue.ports import Received

logger = make_logger()


@logger.inject_lambda_context
@published
@reported
def lambda_handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Works on an SQS batch; answers with the messages that are to stay on the queue (partial batch response)."""
    batch = [Received.of(record) for record in event["Records"]]
    kept = run(worker().run_batch(batch, lambda: context.get_remaining_time_in_millis() / 1000))
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in kept]}
