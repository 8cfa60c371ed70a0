"""The ports, each on both of its adapters: in memory, and on AWS's own API as moto serves it.

The store runs on AWS's own engine too, DynamoDB Local, where that is at hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sift import ids
from sift.blobs.memory import MemoryBlobs
from sift.blobs.s3 import S3Blobs
from sift.clock import SystemClock
from sift.events.eventbridge import EventBridgeBus
from sift.events.memory import MemoryBus
from sift.jobs import Flight, Meta, State
from sift.queue.memory import MemoryQueue
from sift.queue.sqs import SqsDeadLetters, SqsQueue
from sift.specs import Spec
from sift.store.dynamo import DynamoStore
from sift.store.memory import MemoryStore
from sift.store.ports import Idempotency, Segment, Submission
from sift_client.local.cloud import Cloud
from sift_client.local.document import read_document
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint
from tests.contract.engine import Engine, find_missing

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
_numbers = itertools.count()


@dataclass(frozen=True)
class Deployed:
    """What template.yaml makes, on moto behind the gate that holds AWS's size limits."""

    cloud: Cloud
    naming: Naming
    blueprint: Any

    def client(self, service: str) -> Any:
        return self.cloud.client(service)


@pytest.fixture(scope="session")
def deployed() -> Iterator[Deployed]:
    cloud = Cloud()
    try:
        document = read_document(TEMPLATE, {})
        naming = Naming(document, "contract", cloud.account, cloud.url, "http://127.0.0.1:9")
        blueprint = make_blueprint(document, naming)
        cloud.provision(blueprint)
        yield Deployed(cloud, naming, blueprint)
    finally:
        cloud.close()


_missing = find_missing()
#: On a test, or on the parameter of one, that needs the engine.
needs_engine = [] if _missing is None else [pytest.mark.skip(reason=_missing)]


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    running = Engine()
    try:
        yield running
    finally:
        running.close()


def new_table(deployed: Deployed, client: Any = None) -> str:
    """One more table like the template's, so that tests do not meet; on moto unless a client says where."""
    name = f"jobs-{next(_numbers)}"
    request = {**deployed.blueprint.tables["JobsTable"].request, "TableName": name}
    (client or deployed.client("dynamodb")).create_table(**request)
    return name


@pytest.fixture(params=["memory", "aws", pytest.param("engine", marks=needs_engine)])
def store(request: pytest.FixtureRequest) -> MemoryStore | DynamoStore:
    if request.param == "memory":
        return MemoryStore()
    if request.param == "engine":
        client = request.getfixturevalue("engine").client
    else:
        client = request.getfixturevalue("deployed").client("dynamodb")
    return DynamoStore(client, new_table(request.getfixturevalue("deployed"), client))


class MemoryQueues:
    """The queue in memory, as the tests look at it."""

    def __init__(self) -> None:
        self.queue = MemoryQueue(SystemClock())
        self.dead_letters = self.queue

    def receive(self, most: int) -> list[tuple[str, str]]:
        return [(receipt, message.body) for receipt, message in self.queue.receive(most)]

    def delete(self, receipt: str) -> None:
        self.queue.delete(receipt)

    def buried(self) -> list[str]:
        return [body for body, _ in self.queue.buried]


class SqsQueues:
    """The queue on SQS, as the tests look at it."""

    def __init__(self, deployed: Deployed) -> None:
        self._client = deployed.client("sqs")
        number = next(_numbers)
        made = deployed.blueprint.queues["FetchQueue"].attributes
        attributes = {name: value for name, value in made.items() if name != "RedrivePolicy"}
        make = self._client.create_queue
        self._url = make(QueueName=f"fetch-{number}", Attributes=attributes)["QueueUrl"]
        self._dead = make(QueueName=f"dead-{number}")["QueueUrl"]
        self.queue = SqsQueue(self._client, self._url)
        self.dead_letters = SqsDeadLetters(self._client, self._dead)

    def receive(self, most: int) -> list[tuple[str, str]]:
        answer = self._client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=most)
        return [(message["ReceiptHandle"], message["Body"]) for message in answer.get("Messages", [])]

    def delete(self, receipt: str) -> None:
        self._client.delete_message(QueueUrl=self._url, ReceiptHandle=receipt)

    def buried(self) -> list[str]:
        answer = self._client.receive_message(QueueUrl=self._dead, MaxNumberOfMessages=10)
        return [message["Body"] for message in answer.get("Messages", [])]


@pytest.fixture(params=["memory", "aws"])
def queues(request: pytest.FixtureRequest) -> MemoryQueues | SqsQueues:
    return MemoryQueues() if request.param == "memory" else SqsQueues(request.getfixturevalue("deployed"))


@pytest.fixture(params=["memory", "aws"])
def blobs(request: pytest.FixtureRequest) -> MemoryBlobs | S3Blobs:
    if request.param == "memory":
        return MemoryBlobs()
    deployed: Deployed = request.getfixturevalue("deployed")
    return S3Blobs(deployed.client("s3"), deployed.naming.ref("ContentBucket"))


@pytest.fixture(params=["memory", "aws"])
def bus(request: pytest.FixtureRequest) -> MemoryBus | EventBridgeBus:
    if request.param == "memory":
        return MemoryBus()
    deployed: Deployed = request.getfixturevalue("deployed")
    return EventBridgeBus(deployed.client("events"), deployed.naming.ref("EventBus"))


NOW = 1_796_000_000_000
HOUR = 3_600_000


def submission(
    job_id: str | None = None,
    *,
    caller: str = "acme/ann",
    total: int = 3,
    released: int | None = None,
    idempotency: str | None = None,
    work: str = "work",
    caller_cap: int = 5,
    shard_cap: int = 50,
    shard: int = 0,
    stale_job: str | None = None,
    expires_in: int | None = HOUR * 24,
) -> Submission:
    """A submission of a small job."""
    job_id = job_id or ids.new_job_id(NOW)
    expires_at = None if expires_in is None else (NOW + expires_in) // 1000
    released = total if released is None else released
    meta = Meta(
        job_id=job_id,
        kind="fetch",
        caller=caller,
        identity={"tenant": "acme", "actor": "ann", "scopes": ["fetch"]},
        total=total,
        created_at=NOW,
        deadline_at=NOW + HOUR,
        ttl_seconds=3600,
        expires_at=expires_at,
        shard=shard,
        salt="salt",
        options={"mode": "text"},
        metadata={"run": "7"},
        idempotency=idempotency,
    )
    state = State(
        job_id=job_id,
        status="queued",
        total=total,
        released=released,
        window=4,
        budget=1000,
        deadline_at=NOW + HOUR,
        expires_at=expires_at,
        flight={index: Flight(NOW - 5000) for index in range(released)},
    )
    specs = [
        Spec(f"https://example.com/{i}", {"mode": "raw"} if i else {}, f"id{i}" if i else None) for i in range(total)
    ]
    record = idempotency and Idempotency(idempotency, job_id, work, expires_at)
    return Submission(
        meta=meta,
        state=state,
        idempotency=record or None,
        caller_cap=caller_cap,
        shard_cap=shard_cap,
        segments=[Segment(0, specs)],
        stale_job=stale_job,
    )
