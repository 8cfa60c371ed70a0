"""One target now: POST /v1/fetch, apart from the other routes since it needs the pipeline and a cap of its own."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from sift.api.application import build_fetch_now
from sift.bootstrap.callers import fetch_now
from sift.emf import published
from sift.loglines import make_logger, reported

logger = make_logger()
application = build_fetch_now(fetch_now)


@logger.inject_lambda_context
@published
@reported
def lambda_handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answers one request of the HTTP API (payload format 2.0) with the target's content, or its error."""
    return application.handle(event, context)
