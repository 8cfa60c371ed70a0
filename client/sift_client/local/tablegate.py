"""DynamoDB's size limits, which moto checks loosely or not at all; the gate calls this under its lock."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from moto.backends import get_backend
from moto.dynamodb.exceptions import MockValidationException
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import Item

from sift_client.local.calls import Answer, Environ, Refusal, call
from sift_client.local.naming import REGION
from sift_client.local.sizes import measure_item, measure_value
from sift_client.local.snapshots import Place, Snapshot, narrowed, uncopied

ITEM_BYTES = 400 * 1024  # DynamoDB quotas: an item with its attribute names
TRANSACTION_BYTES = 4 * 1024 * 1024  # DynamoDB quotas: all items of a transaction together
TRANSACTION_ACTIONS = 100
TOO_LARGE = "Item size has exceeded the maximum allowed size"
UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"

#: What moto raises on a malformed key; the call itself will answer for it.
MALFORMED = (MockValidationException, AttributeError, KeyError, TypeError, ValueError)

Key = tuple[str, dict[str, Any]]


class TableGate:
    """Serves DynamoDB calls; an update that makes an item too large is undone and refused."""

    def __init__(self, application: Any, account: str) -> None:
        self._application = application
        self._account = account

    def serve(self, environ: Environ, operation: str, body: bytes) -> Answer:
        """Runs one call, which no other call may run beside; raises Refusal."""
        request = json.loads(body or b"{}")
        if operation == "PutItem":
            self._check_item(request["Item"])
        elif operation == "BatchWriteItem":
            for writes in request["RequestItems"].values():
                for write in writes:
                    if "PutRequest" in write:
                        self._check_item(write["PutRequest"]["Item"])
        elif operation == "UpdateItem":
            return self._update(environ, request)
        elif operation == "Query":
            return self._query(environ, request)
        elif operation == "TransactWriteItems":
            return self._transact(environ, request["TransactItems"])
        return call(self._application, environ)

    def _check_item(self, item: dict[str, Any]) -> None:
        if measure_item(item) > ITEM_BYTES:
            raise Refusal("ValidationException", TOO_LARGE)

    def _update(self, environ: Environ, request: dict[str, Any]) -> Answer:
        key = (request["TableName"], request["Key"])
        if _bound(request, self._measure(key)) <= ITEM_BYTES:
            return call(self._application, environ)
        before = Snapshot(self._locate([key]))
        answer = call(self._application, environ)
        too_large = answer.ok and self._measure(key) > ITEM_BYTES
        if too_large or not answer.ok:
            # moto refuses some of these itself, but leaves the item half changed.
            before.restore()
        if too_large:
            raise Refusal("ValidationException", UPDATE_TOO_LARGE)
        return answer

    def _query(self, environ: Environ, request: dict[str, Any]) -> Answer:
        table = self._backend().tables.get(request["TableName"])
        if table is None or "IndexName" in request:
            return call(self._application, environ)
        with narrowed(table):
            return call(self._application, environ)

    def _transact(self, environ: Environ, actions: list[dict[str, Any]]) -> Answer:
        if len(actions) > TRANSACTION_ACTIONS:
            raise Refusal(
                "ValidationException",
                f"1 validation error detected: Value '[{', '.join(['TransactWriteItem'] * len(actions))}]' at "
                "'transactItems' failed to satisfy constraint: "
                f"Member must have length less than or equal to {TRANSACTION_ACTIONS}",
            )
        if any(len(action) != 1 for action in actions):
            message = "TransactItems can only contain one of Check, Put, Update or Delete"
            raise Refusal("ValidationException", message)
        if any(request["TableName"] not in self._backend().tables for action in actions for request in action.values()):
            return call(self._application, environ)
        total = 0
        suspects: dict[int, Key] = {}
        for index, action in enumerate(actions):
            ((kind, request),) = action.items()
            if kind == "Put":
                self._check_item(request["Item"])
                total += measure_item(request["Item"])
                continue
            key = (request["TableName"], request["Key"])
            size = self._measure(key)
            total += size
            if kind == "Update":
                total += _measure_values(request)
                if _bound(request, size) > ITEM_BYTES:
                    suspects[index] = key
        if total > TRANSACTION_BYTES:
            raise Refusal("ValidationException", "Transaction item size has exceeded the 4 MB limit")
        places = self._locate(self._list_keys(actions))
        before = Snapshot(places)
        with uncopied(table for table, _, _ in places):
            answer = call(self._application, environ)
        oversized = {index for index, key in suspects.items() if self._measure(key) > ITEM_BYTES}
        if not answer.ok and UPDATE_TOO_LARGE.encode() in answer.body:
            # moto says so without saying which.
            oversized = set(suspects)
        if oversized or not answer.ok:
            before.restore()
        if oversized:
            reasons = [
                {"Code": "ValidationError", "Message": UPDATE_TOO_LARGE} if index in oversized else {"Code": "None"}
                for index in range(len(actions))
            ]
            codes = ", ".join(reason["Code"] for reason in reasons)
            raise Refusal(
                "TransactionCanceledException",
                "Transaction cancelled, please refer cancellation reasons for specific reasons " + f"[{codes}]",
                extra={"CancellationReasons": reasons},
            )
        return answer

    def _backend(self) -> DynamoDBBackend:
        backend = get_backend("dynamodb")[self._account][REGION]
        assert isinstance(backend, DynamoDBBackend)
        return backend

    def _list_keys(self, actions: list[dict[str, Any]]) -> list[Key]:
        """The keys of the actions; where a put has none, its item stands for it."""
        return [
            (request["TableName"], request["Item"] if kind == "Put" else request["Key"])
            for action in actions
            for kind, request in action.items()
        ]

    def _locate(self, keys: list[Key]) -> list[Place]:
        """Where the items of these keys are; malformed keys, under which nothing can be stored, are left out."""
        places = []
        for name, attributes in keys:
            with contextlib.suppress(*MALFORMED):
                table = self._backend().tables[name]
                hash_key, range_key = self._backend().get_keys_value(table, attributes)
                hash((hash_key, range_key))  # lists and maps are no keys
                places.append((table, hash_key, range_key))
        return places

    # Items are read straight from the backend: a second HTTP call would double the time of every update.

    def _find(self, key: Key) -> Item | None:
        name, attributes = key
        if name not in self._backend().tables:
            return None
        try:
            return self._backend().get_item(name, attributes)
        except MALFORMED:
            return None

    def _measure(self, key: Key) -> int:
        """Size of the item, or of its key where there is none."""
        item = self._find(key)
        if item is None:
            return measure_item(key[1])
        return measure_item({name: value.to_regular_json() for name, value in item.attrs.items()})


def _measure_values(request: dict[str, Any]) -> int:
    return sum(map(measure_value, (request.get("ExpressionAttributeValues") or {}).values()))


def _bound(request: dict[str, Any], size: int) -> int:
    """No ordinary update makes an item larger than this: what is there copied once, and what is sent, with names."""
    return 2 * size + len(json.dumps(request).encode())
