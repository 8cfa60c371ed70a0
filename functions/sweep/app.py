"""The sweeper: once a minute, whatever was lost in between is brought on."""

from __future__ import annotations

import gc

gc.disable()  # what is imported is no garbage, and looking for it in between is a tenth of a cold start

import dataclasses
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from sift.bootstrap.workers import sweeper
from sift.emf import published
from sift.environment import run
from sift.loglines import make_logger, reported

logger = make_logger()
gc.freeze()
gc.enable()


@logger.inject_lambda_context
@published
@reported
def lambda_handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Walks over all live jobs; answers with what it did."""
    report = run(sweeper().sweep(lambda: context.get_remaining_time_in_millis() / 1000))
    logger.info("swept", extra=dataclasses.asdict(report))
    return dataclasses.asdict(report)
