"""An SQS event source mapping: receives batches, invokes the function, deletes what succeeded."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from typing import Any

import botocore.exceptions

from sift_client.local.blueprint import MappingSpec
from sift_client.local.function import PAYLOAD_BYTES, Function, Outcome, RequestTooLarge, Stopped, Throttled
from sift_client.local.naming import REGION

IDLE_SECONDS = 0.2  # between two looks at an idle queue; a message sent through the gate wakes the mapping at once
UNLIMITED = 5  # Lambda starts a mapping without MaximumConcurrency at five batches at once; here it stays there
RECEIVE_AT_ONCE = 10  # SQS quotas: messages of one ReceiveMessage


class Mapping:
    """Runs one mapping in a thread of its own until `stop`; batches run in a thread each."""

    def __init__(self, spec: MappingSpec, function: Function, sqs: Any, queue_url: str) -> None:
        self.spec = spec
        self._function = function
        self._sqs = sqs
        self._queue_url = queue_url
        self._limit = spec.maximum or UNLIMITED
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._free = threading.Condition()
        self._running = 0
        attributes = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["VisibilityTimeout"])["Attributes"]
        self._visibility = float(attributes["VisibilityTimeout"])
        self._thread = threading.Thread(target=self._run, name=spec.name, daemon=True)

    def start(self) -> None:
        """Begins to receive."""
        self._thread.start()

    def wake(self) -> None:
        """Says that the queue has changed."""
        self._wake.set()

    def stop(self) -> None:
        """Receives no more; what is received but not running goes back, what runs goes on."""
        self._stopping.set()
        self._wake.set()
        with self._free:
            self._free.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def wait_idle(self, seconds: float) -> bool:
        """Waits until every batch has been settled with the queue; says whether that is so."""
        with self._free:
            return self._free.wait_for(lambda: self._running == 0, seconds)

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._free:
                self._free.wait_for(lambda: self._running < self._limit or self._stopping.is_set())
            self._wake.clear()
            try:
                messages = self._gather()
            except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
                # Someone deleted the queue, or the stack is being closed under us: a mapping goes on trying.
                messages = []
            if not messages:
                self._wake.wait(IDLE_SECONDS)
                continue
            if self._stopping.is_set():
                self._put_back(messages)
                return
            with self._free:
                self._running += 1
            threading.Thread(target=self._work, args=(messages, time.monotonic()), daemon=True).start()

    def _gather(self) -> list[dict[str, Any]]:
        """One batch: what one receive gives, or with a batching window all that comes until it ends."""
        messages: list[dict[str, Any]] = []
        end = time.monotonic() + self.spec.window
        while len(messages) < self.spec.batch_size and not self._stopping.is_set():
            count = min(RECEIVE_AT_ONCE, self.spec.batch_size - len(messages))
            answer = self._sqs.receive_message(
                QueueUrl=self._queue_url, MaxNumberOfMessages=count,
                MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"],
            )  # fmt: skip
            received = answer.get("Messages", [])
            if not messages and received:
                end = time.monotonic() + self.spec.window
            messages += received
            if not messages or time.monotonic() >= end:
                break
            if not received:
                self._wake.wait(min(0.05, self.spec.window))
        return messages

    def _work(self, messages: list[dict[str, Any]], received: float) -> None:
        try:
            records = [make_record(message, self.spec.queue_arn) for message in messages]
            for batch in split_records(records):
                self._deliver(batch, received + self._visibility)
        finally:
            with self._free:
                self._running -= 1
                self._free.notify_all()

    def _deliver(self, records: list[dict[str, Any]], until: float) -> None:
        event = json.dumps({"Records": records}, ensure_ascii=False)
        pause = 0.05
        while True:
            try:
                outcome = self._function.invoke(event)
                break
            except Throttled:
                # Lambda tries a throttled batch again until its messages become visible by themselves.
                if time.monotonic() + pause >= until:
                    return
                if self._stopping.wait(pause):
                    self._put_back(records)
                    return
                pause = min(pause * 2, 1.0)
            except Stopped:
                self._put_back(records)
                return
            except RequestTooLarge:
                return
        done = [record["receiptHandle"] for record in find_succeeded(records, outcome, self.spec.partial)]
        # A queue that is gone takes its messages with it.
        with contextlib.suppress(botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            for start in range(0, len(done), RECEIVE_AT_ONCE):
                handles = done[start : start + RECEIVE_AT_ONCE]
                self._sqs.delete_message_batch(
                    QueueUrl=self._queue_url,
                    Entries=[{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(handles)],
                )

    def _put_back(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            handle = message.get("ReceiptHandle") or message["receiptHandle"]
            with contextlib.suppress(botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
                self._sqs.change_message_visibility(QueueUrl=self._queue_url, ReceiptHandle=handle, VisibilityTimeout=0)


def make_record(message: dict[str, Any], queue_arn: str) -> dict[str, Any]:
    """A received message as Lambda shows it to a function."""
    record = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {
            name: {
                **({"stringValue": value["StringValue"]} if "StringValue" in value else {}),
                **({"binaryValue": _encode(value["BinaryValue"])} if "BinaryValue" in value else {}),
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": value["DataType"],
            }
            for name, value in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    }
    if "MD5OfMessageAttributes" in message:
        record["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    return record


def split_records(records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Batches that each fit Lambda's 6 MB, in order."""
    batches: list[list[dict[str, Any]]] = []
    room = 0
    for record in records:
        size = len(json.dumps(record, ensure_ascii=False).encode()) + 2
        if not batches or size > room:
            batches.append([])
            room = PAYLOAD_BYTES - len('{"Records": []}')
        batches[-1].append(record)
        room -= size
    return batches


def find_succeeded(records: list[dict[str, Any]], outcome: Outcome, partial: bool) -> list[dict[str, Any]]:
    """The records to delete.

    Lambda's rules for ReportBatchItemFailures: nothing reported or an empty or null list is a whole success; an error,
    a malformed answer, or an id that is empty or not of the batch is a whole failure.
    """
    if outcome.failed:
        return []
    if not partial:
        return records
    answer = outcome.value
    if answer is None or answer == {}:
        return records
    if not isinstance(answer, dict):
        # A bare string or number reports nothing; Lambda cannot read it as a report.
        return []
    failures = answer.get("batchItemFailures")
    if failures is None:
        return records
    if not isinstance(failures, list):
        return []
    ids = {record["messageId"] for record in records}
    failed = set()
    for failure in failures:
        identifier = failure.get("itemIdentifier") if isinstance(failure, dict) else None
        if identifier not in ids:
            return []
        failed.add(identifier)
    return [record for record in records if record["messageId"] not in failed]


def _encode(value: bytes) -> str:
    return base64.b64encode(value).decode()
