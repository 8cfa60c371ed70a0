"""Batches that nobody types, on the template of the project: events in, webhooks out, and what is no batch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from sift.clock import SystemClock
from sift.identity import Identity, KeyRecord
from sift.services.webhook_secrets import WebhookSecrets
from sift.store.dynamo import DynamoStore
from sift_client.local import LocalStack
from tests.integration.api.test_webhooks import Receiver
from tests.integration.local.project import wait_for

ROOT = Path(__file__).parents[3]
KEY_ID = "00000000000a"
PATIENCE = 240
URL = "http://127.0.0.1:9/closed"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def stack(tmp_path: Path, receiver: Receiver) -> Iterator[LocalStack]:
    batch = {"targets": [{"url": URL, "id": "<aws.scheduler.scheduled-time>"}], "metadata": {"by": "timer"}}
    parameters = {
        "EventKeyId": KEY_ID, "ScheduleExpression": "rate(1 minute)", "ScheduleInput": json.dumps(batch),
        "GuardAllow": receiver.address, "JobsPerCaller": "100", "JobsTotal": "100",
    }  # fmt: skip
    with LocalStack(
        ROOT / "template.yaml", log_dir=tmp_path / "logs", parameters=parameters, make_key=lambda stack: None,
        retry_speed=100, schedule_speed=20,
    ) as made:  # fmt: skip
        assert made.unknown == []
        record = KeyRecord(KEY_ID, "0" * 64, Identity("acme", "timer", KEY_ID), events=True)
        asyncio.run(store_of(made).put_key(record))
        yield made


def store_of(stack: LocalStack) -> DynamoStore:
    return DynamoStore(stack.client("dynamodb"), stack.physical("JobsTable"))


def put(stack: LocalStack, detail: Any, detail_type: str = "Sift Batch Requested") -> str:
    entry = {
        "EventBusName": stack.physical("EventBus"), "Source": "acme", "DetailType": detail_type,
        "Detail": json.dumps(detail),
    }  # fmt: skip
    event_id: str = stack.client("events").put_events(Entries=[entry])["Entries"][0]["EventId"]
    return event_id


def jobs_by(stack: LocalStack, word: str) -> list[Any]:
    async def look() -> list[Any]:
        store = store_of(stack)
        ids, _ = await store.list_jobs("acme/timer", SystemClock().now_ms(), None, 100)
        return [(meta, state) for meta, state in await store.get_jobs(ids) if meta.metadata.get("by") == word]

    return asyncio.run(look())


def letters(stack: LocalStack) -> list[Any]:
    ask = {"QueueUrl": stack.physical("ScheduleDeadLetterQueue"), "MaxNumberOfMessages": 10}
    return [json.loads(m["Body"]) for m in stack.client("sqs").receive_message(**ask).get("Messages", [])]


def test_events_and_schedules_become_jobs_and_their_ends_are_posted(stack: LocalStack, receiver: Receiver) -> None:
    secret = asyncio.run(WebhookSecrets(store_of(stack), SystemClock()).renew("acme", "timer"))
    put(stack, {"targets": [{"url": URL}]}, "Something Else")
    put(stack, {"targets": [{"url": URL}], "metadata": {"by": "event"}, "webhook": {"url": receiver.url}})
    wait_for(lambda: receiver.posts, PATIENCE)
    headers, body = receiver.posts[0]
    posted = Webhook(secret).verify(body, headers)
    ((meta, state),) = jobs_by(stack, "event")
    assert (posted["type"], posted["data"]["job_id"], posted["data"]["status"]) == (
        "job.ended", meta.job_id, state.status,
    )  # fmt: skip
    wait_for(lambda: len(jobs_by(stack, "timer")) >= 2, PATIENCE)
    keys = {meta.idempotency for meta, _ in jobs_by(stack, "timer")}
    assert len(keys) >= 2, "each firing is a job of its own"


def test_what_is_no_batch_is_a_dead_letter_with_its_reason(stack: LocalStack) -> None:
    event_id = put(stack, {"targets": [{"url": "ftp://example.com/"}]})
    (letter,) = wait_for(lambda: letters(stack), PATIENCE)
    assert letter["requestPayload"]["id"] == event_id
    assert letter["requestContext"]["condition"] == "RetriesExhausted"
    assert letter["responsePayload"]["errorMessage"].startswith("invalid_target: targets.0.url")
