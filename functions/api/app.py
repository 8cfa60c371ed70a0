"""The HTTP API: submit, status, results, cancel."""

from __future__ import annotations

import gc

gc.disable()  # what is imported is no garbage, and looking for it in between is a tenth of a cold start

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from sift.api.application import build
from sift.bootstrap.callers import api
from sift.emf import published
from sift.loglines import make_logger, reported

logger = make_logger()
application = build(api)
gc.freeze()
gc.enable()


@logger.inject_lambda_context
@published
@reported
def lambda_handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answers one request of the HTTP API (payload format 2.0)."""
    return application.handle(event, context)
