"""A queue on SQS: messages grouped by job so that the queue is fair between jobs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from botocore.exceptions import ClientError

from sift import aws
from sift.queue.ports import Sendable

#: SendMessageBatch takes up to 10 messages and 1 MiB in all (SQS quotas); less, to leave room for attributes.
BATCH = 10
BATCH_BYTES = 1_000_000

#: A receipt that is no longer of use: the message was deleted, or received again by another worker.
_STALE = frozenset(
    {
        "ReceiptHandleIsInvalid",
        "InvalidParameterValue",
        "MessageNotInflight",
        "AWS.SimpleQueueService.MessageNotInflight",
    }
)

_log = logging.getLogger(__name__)


class SqsQueue:
    """`client` is a boto3 SQS client."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    async def send(self, messages: Sequence[Sendable]) -> int:
        accepted = 0
        for batch in _batches(messages):
            entries = [
                {"Id": str(number), "MessageBody": body, "MessageGroupId": job_id}
                for number, (job_id, body) in enumerate(batch)
            ]
            answer = await aws.call(self._client.send_message_batch, QueueUrl=self._url, Entries=entries)
            accepted += len(answer.get("Successful", []))
        return accepted

    async def send_later(self, message: Sendable, seconds: int) -> None:
        await aws.call(
            self._client.send_message,
            QueueUrl=self._url,
            MessageBody=message.encode(),
            MessageGroupId=message.job_id,
            DelaySeconds=seconds,
        )

    async def set_visibility(self, receipt: str, seconds: int) -> None:
        try:
            await aws.call(
                self._client.change_message_visibility,
                QueueUrl=self._url,
                ReceiptHandle=receipt,
                VisibilityTimeout=seconds,
            )
        except ClientError as error:
            if aws.error_code(error) not in _STALE:
                raise
            _log.info("the message is no longer mine to hide")

    async def visible(self) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
        answer = await aws.call(self._client.get_queue_attributes, QueueUrl=self._url, AttributeNames=names)
        return sum(int(answer["Attributes"][name]) for name in names)


class SqsDeadLetters:
    """The dead-letter queue, for messages that no version of sift wrote."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    async def bury(self, body: str, reason: str) -> None:
        attribute = {"reason": {"DataType": "String", "StringValue": reason[:200]}}
        await aws.call(self._client.send_message, QueueUrl=self._url, MessageBody=body, MessageAttributes=attribute)


def _batches(messages: Sequence[Sendable]) -> Iterator[list[tuple[str, str]]]:
    """Job id and body of each message, in groups that one request can carry."""
    batch: list[tuple[str, str]] = []
    size = 0
    for message in messages:
        body = message.encode()
        weight = len(body.encode())
        if batch and (len(batch) == BATCH or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((message.job_id, body))
        size += weight
    if batch:
        yield batch
