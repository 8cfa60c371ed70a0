"""The API key of a local stack, made by sift's own key service so that nothing about keys is known twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sift_client.connection import Connection, LocalTable

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
    from sift.identity import SCOPES
    from sift.services.keys import KeyService
    from sift.store.dynamo import DynamoStore

    store = DynamoStore(stack.client("dynamodb"), stack.physical(KEY_TABLE))
    keys = KeyService(store, SystemClock())
    # Whoever runs the stack is its operator as well.
    return asyncio.run(keys.create(tenant="local", actor="local", scopes=SCOPES, limits=LIMITS))


def describe_access(stack: LocalStack) -> tuple[Connection, LocalTable] | None:
    """What another terminal needs to use the stack and to make keys for it; None: it has no keys."""
    if stack.key is None:
        return None
    table = LocalTable(stack.client("dynamodb").meta.endpoint_url, stack.physical(KEY_TABLE))
    return Connection(stack.url, stack.key), table
