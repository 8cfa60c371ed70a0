"""Batches that nobody types: an event on the stack's bus, or a schedule, submits a job."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from sift.api.firings import read_firing, reason
from sift.bootstrap.callers import schedule
from sift.emf import published
from sift.environment import run
from sift.errors import RequestRefused
from sift.loglines import Failed, make_logger, reported

logger = make_logger()


@logger.inject_lambda_context
@published
@reported
def lambda_handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Submits; answers with the job. What fails is tried again by Lambda, then is a dead letter with its reason."""
    services = schedule()
    try:
        submitted = run(services.scheduler.submit(read_firing(event, services.check_webhook)))
    except RequestRefused as error:
        raise Failed(reason(error)) from None
    return {"job_id": submitted.meta.job_id, "reused": submitted.reused}
