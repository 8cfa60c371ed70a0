"""How the adapters call AWS: in a thread, with every passing fault turned into Unavailable."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sift.errors import Unavailable

#: Error codes that mean «try again»: throttling, overload and internal faults of DynamoDB, SQS, S3 and EventBridge.
PASSING = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "ItemCollectionSizeLimitExceededException",
        "KmsThrottled",
        "LimitExceededException",
        "OverLimit",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)

#: A conflict with another transaction reaches single writes too, and no SDK repeats it inside a transaction.
CONFLICT_TRIES = 8


def error_code(error: ClientError) -> str:
    """The service's code of an error."""
    return str(error.response.get("Error", {}).get("Code", ""))


def was_repeated(error: ClientError) -> bool:
    """Whether botocore had sent the request more than once when it was refused."""
    return bool(error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0))


def mark_repeated(error: ClientError) -> None:
    """Have `was_repeated` say so: an earlier call for the same change was sent more than once."""
    error.response["ResponseMetadata"]["RetryAttempts"] = 1


async def call(operation: Callable[..., Any], **request: Any) -> Any:
    """One call. ClientErrors that a caller can act on pass through; passing faults become Unavailable."""
    try:
        return await asyncio.to_thread(operation, **request)
    except ClientError as error:
        code = error_code(error)
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code in PASSING or status >= 500:
            raise Unavailable(f"{operation.__name__}: {code}") from error
        raise
    except BotoCoreError as error:
        raise Unavailable(f"{operation.__name__}: {type(error).__name__}") from error


def conflict_waits() -> Iterable[float]:
    """Seconds to wait before each repetition after a transaction conflict: growing, with full jitter."""
    for attempt in range(CONFLICT_TRIES):
        yield random.uniform(0, min(1.0, 0.02 * 2**attempt))  # noqa: S311 (spreads load, guards nothing)
