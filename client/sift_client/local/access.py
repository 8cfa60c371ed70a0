"""The API key of a local stack, made by sift's own key service so that nothing about keys is known twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sift_client.local.stack import LocalStack

KEY_TABLE = "JobsTable"
# Generous: the stack has one user, who should not meet the caps of a shared service first.
LIMITS = {"targets_per_job": 9000, "jobs_per_caller": 8}


def make_key(stack: LocalStack) -> str | None:
    """A key for the caller `local/local`, or None when the template has no table of keys."""
    if not stack.has(KEY_TABLE):
        return None
    # Only here, so that the stack runs any template, with or without sift beside it.
    from sift.clock import SystemClock
    from sift.services.keys import KeyService
    from sift.store.dynamo import DynamoStore

    store = DynamoStore(stack.client("dynamodb"), stack.physical(KEY_TABLE))
    return asyncio.run(KeyService(store, SystemClock()).create(tenant="local", actor="local", limits=LIMITS))
