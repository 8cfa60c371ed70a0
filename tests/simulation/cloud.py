"""The table and the queue on AWS's own API: the real adapters, and moto called in this very thread."""

from __future__ import annotations

import functools
import io
import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import botocore.awsrequest
import botocore.config
import botocore.session
import moto.sqs.models
from botocore.exceptions import ClientError
from moto.backends import get_backend
from werkzeug.test import Client, EnvironBuilder

from sift.jobs import Kind
from sift.queue.memory import MemoryQueue
from sift.queue.ports import Received
from sift.queue.sqs import SqsQueue
from sift.store import codec
from sift.store.dynamo import DynamoStore
from sift.store.memory import MemoryStore
from sift_client.local.dispatch import Dispatcher
from sift_client.local.document import read_document
from sift_client.local.gate import Gate
from sift_client.local.naming import REGION, Naming
from sift_client.local.planner import make_blueprint
from tests.simulation.backend import MemoryBackend, target_of

ACCOUNT = "210987654321"
URL = "http://aws.invalid"
TEMPLATE = Path(__file__).parents[2] / "template.yaml"
_numbers = itertools.count()


class _Raw(io.BytesIO):
    """A response body as botocore reads it."""

    def stream(self, **_: Any) -> Any:
        while chunk := self.read(65_536):
            yield chunk


class _Wire:
    """Clients whose requests end in moto, without a network or a thread between; in an account of its own."""

    def __init__(self) -> None:
        self._web = Client(Gate(Dispatcher(), ACCOUNT))
        session = botocore.session.Session(session_vars={"profile": (None, None, None, None)})
        session.set_config_variable("config_file", os.devnull)
        session.set_config_variable("credentials_file", os.devnull)
        self.clients = {}
        for service in ("dynamodb", "sqs"):
            client = session.create_client(
                service, region_name=REGION, endpoint_url=URL, aws_access_key_id="local", aws_secret_access_key="local",
                config=botocore.config.Config(retries={"total_max_attempts": 1}),
            )  # fmt: skip
            client.meta.events.register("before-send", self._send)
            self.clients[service] = client
        document = read_document(TEMPLATE, {})
        blueprint = make_blueprint(document, Naming(document, "simulation", ACCOUNT, URL, URL))
        self.table = blueprint.tables["JobsTable"].request
        queue = blueprint.queues["FetchQueue"].attributes
        self.queue = {name: value for name, value in queue.items() if name != "RedrivePolicy"}

    def _send(self, request: Any, **_: Any) -> Any:
        headers = {
            name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()
        }
        builder = EnvironBuilder(
            method=request.method, base_url=URL, path=request.url[len(URL) :], headers=headers, data=request.body
        )
        answer = self._web.open(builder)
        return botocore.awsrequest.AWSResponse(request.url, answer.status_code, dict(answer.headers), _Raw(answer.data))


@functools.cache
def _wire() -> _Wire:
    return _Wire()


class _Contended:
    """A DynamoDB client that loses some races: conflicts with transactions, and batches that are taken in part."""

    def __init__(self, client: Any, lost: Callable[[], bool]) -> None:
        self._client = client
        self._lost = lost

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        @functools.wraps(method)
        def call(**request: Any) -> Any:
            if name in {"update_item", "put_item", "delete_item"} and self._lost():
                raise ClientError(_error("TransactionConflictException"), name)
            if name == "transact_write_items" and self._lost():
                reasons = [{"Code": "None"} for _ in request["TransactItems"]]
                reasons[-1] = {"Code": "TransactionConflict"}
                refusal = {**_error("TransactionCanceledException"), "CancellationReasons": reasons}
                raise ClientError(refusal, name)  # type: ignore[arg-type]
            if name == "batch_write_item" and self._lost():
                return {"UnprocessedItems": request["RequestItems"]}
            return method(**request)

        return call


def _error(code: str) -> Any:
    return {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": 400, "RetryAttempts": 0}}


class AwsBackend(MemoryBackend):
    """`DynamoStore` and `SqsQueue` as they are deployed. The view is decoded from moto's own items."""

    def __init__(self, clock: Any, rng: random.Random) -> None:
        super().__init__(clock, rng)
        self._wire = wire = _wire()
        self._name = f"simulation-{next(_numbers)}"
        wire.clients["dynamodb"].create_table(**{**wire.table, "TableName": self._name})
        self._names: dict[Kind, str] = {"fetch": self._name, "inference": f"{self._name}-asks"}
        self._urls: dict[Kind, str] = {
            kind: wire.clients["sqs"].create_queue(QueueName=name, Attributes=wire.queue)["QueueUrl"]
            for kind, name in self._names.items()
        }
        self._mirror = MemoryStore()
        self._known: dict[tuple[str, str], tuple[Any, Any]] = {}
        chance = random.Random(rng.random())
        contended = _Contended(wire.clients["dynamodb"], lambda: not clock.calm and chance.random() < 0.05)
        self.store: Any = DynamoStore(contended, self._name)
        self.queue = SqsQueue(wire.clients["sqs"], self._urls["fetch"])
        self.asks = SqsQueue(wire.clients["sqs"], self._urls["inference"])
        self.dead_letters = MemoryQueue(clock)
        self._times = [
            mock.patch.object(moto.sqs.models, "unix_time_millis", side_effect=lambda: float(clock.now_ms())),
            mock.patch.object(moto.sqs.models, "unix_time", side_effect=lambda: clock.now_ms() / 1000),
        ]
        for patch in self._times:
            patch.start()

    # the table

    def view(self) -> MemoryStore:
        return self._mirror

    def refresh(self) -> None:
        """Decode moto's items into the shape of the table in memory."""
        backend: Any = get_backend("dynamodb")[ACCOUNT][REGION]
        mirror = MemoryStore()
        known = {}
        for by_sort in backend.tables[self._name].items.values():
            for item in by_sort.values():
                wire = item.to_json()["Attributes"]
                key = wire["pk"]["S"], wire["sk"]["S"]
                before = self._known.get(key)
                value = before[1] if before is not None and before[0] == wire else _decode(key, wire)
                known[key] = wire, value
                _place(mirror, key, value)
        self._known, self._mirror = known, mirror

    def contents(self) -> Any:
        self.refresh()
        messages = [(m.body, m.visible_at) for kind in self._names for m in self._messages(kind)]
        return {key: value[0] for key, value in self._known.items()}, messages, set(self.blobs.blobs)

    # the queues

    def _messages(self, kind: Kind) -> list[Any]:
        backend: Any = get_backend("sqs")[ACCOUNT][REGION]
        messages: list[Any] = backend.queues[self._names[kind]]._messages
        return messages

    def receive(self, kind: Kind, most: int) -> list[Received]:
        if not any(message.visible for message in self._messages(kind)):
            return []
        self._rng.shuffle(self._messages(kind))
        answer = self._wire.clients["sqs"].receive_message(
            QueueUrl=self._urls[kind], MaxNumberOfMessages=most, MessageSystemAttributeNames=["ApproximateReceiveCount"]
        )
        return [
            Received(m["MessageId"], m["ReceiptHandle"], m["Body"], int(m["Attributes"]["ApproximateReceiveCount"]))
            for m in answer.get("Messages", [])
        ]

    def delete(self, kind: Kind, received: Received) -> None:
        self._wire.clients["sqs"].delete_message(QueueUrl=self._urls[kind], ReceiptHandle=received.receipt)

    def copies(self, target: tuple[str, int]) -> bool:
        return any(target_of(message.body) == target for kind in self._names for message in self._messages(kind))

    def lose_all(self) -> None:
        for kind in self._names:
            self._messages(kind).clear()
        self.assembly.waiting.clear()

    def close(self) -> None:
        for patch in self._times:
            patch.stop()
        self._wire.clients["dynamodb"].delete_table(TableName=self._name)
        for url in self._urls.values():
            self._wire.clients["sqs"].delete_queue(QueueUrl=url)


def _decode(key: tuple[str, str], wire: Any) -> Any:
    sk = key[1]
    item = codec.from_wire(wire)
    readers: dict[str, Callable[[Any], Any]] = {
        "META": codec.meta_from, "STATE": codec.state_from, "SPECS": codec.segment_from, "IDEM": codec.idempotency_from,
        "HOOK": codec.delivery_from, "WEBHOOK": codec.secrets_from,
    }  # fmt: skip
    if sk in readers:
        return readers[sk](item)
    if sk == "RESULTS":
        return codec.assembly_from(item)
    if sk.startswith("T#"):
        return codec.outcome_from(item)
    return set(item.get("ids", ())) if sk in {"LIVE", "OUTBOX", "REMOVE"} else item.get("expires_at")


def _place(mirror: MemoryStore, key: tuple[str, str], value: Any) -> None:
    kind, _, rest = key[0].partition("#")
    sk = key[1]
    if sk == "META":
        mirror.metas[rest] = value
    elif sk == "STATE":
        mirror.states[rest] = value
    elif sk == "HOOK":
        mirror.deliveries[rest] = value
    elif sk == "WEBHOOK":
        mirror.secrets[rest] = value
    elif sk == "IDEM":
        mirror.idempotency[rest] = value
    elif sk == "SPECS":
        mirror.segments[rest.split("#")[0], value.number] = value
    elif sk == "RESULTS":
        mirror.assemblies[rest] = value
    elif sk.startswith("T#"):
        mirror.outcomes[rest.split("#")[0], value.index] = value
    elif kind == "CALLER" and sk == "LIVE":
        mirror.callers[rest] = value
    elif kind in {"LIVE", "OUTBOX", "REMOVE"}:
        {"LIVE": mirror.live, "OUTBOX": mirror.outboxes, "REMOVE": mirror.removing}[kind][int(rest)] = value
