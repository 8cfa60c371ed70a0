"""DynamoDB's size limits, which moto checks loosely or not at all; the gate calls this under its lock."""

from __future__ import annotations

import copy
import json
from typing import Any

from moto.backends import get_backend
from moto.dynamodb.exceptions import MockValidationException
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import Item

from sift_client.local.calls import Answer, Environ, Refusal, call
from sift_client.local.naming import REGION
from sift_client.local.sizes import measure_item, measure_value

ITEM_BYTES = 400 * 1024  # DynamoDB quotas: an item with its attribute names
TRANSACTION_BYTES = 4 * 1024 * 1024  # DynamoDB quotas: all items of a transaction together
TRANSACTION_ACTIONS = 100
TOO_LARGE = "Item size has exceeded the maximum allowed size"
UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"

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
        before = self._copy(key)
        answer = call(self._application, environ)
        too_large = answer.ok and self._measure(key) > ITEM_BYTES
        if too_large or not answer.ok:
            # moto refuses some of these itself, but leaves the item half changed.
            self._restore(key, before)
        if too_large:
            raise Refusal("ValidationException", UPDATE_TOO_LARGE)
        return answer

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
        if not suspects:
            return call(self._application, environ)
        before = [(key, self._copy(key)) for key in self._list_keys(actions)]
        answer = call(self._application, environ)
        oversized = {index for index, key in suspects.items() if self._measure(key) > ITEM_BYTES}
        if not answer.ok and UPDATE_TOO_LARGE.encode() in answer.body:
            # moto says so without saying which.
            oversized = set(suspects)
        if oversized or not answer.ok:
            for key, item in before:
                self._restore(key, item)
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
        keys = []
        for action in actions:
            ((kind, request),) = action.items()
            table = self._backend().tables[request["TableName"]]
            names = [name for name in (table.hash_key_attr, table.range_key_attr) if name]
            key = {name: request["Item"][name] for name in names} if kind == "Put" else request["Key"]
            keys.append((request["TableName"], key))
        return keys

    # Items are read straight from the backend: a second HTTP call would double the time of every update.

    def _find(self, key: Key) -> Item | None:
        name, attributes = key
        if name not in self._backend().tables:
            return None
        try:
            return self._backend().get_item(name, attributes)
        except (MockValidationException, AttributeError, KeyError, TypeError):
            # A malformed key, which the call itself will answer for.
            return None

    def _measure(self, key: Key) -> int:
        """Size of the item, or of its key where there is none."""
        item = self._find(key)
        if item is None:
            return measure_item(key[1])
        return measure_item({name: value.to_regular_json() for name, value in item.attrs.items()})

    def _copy(self, key: Key) -> Item | None:
        # Updates change moto's items in place.
        return copy.deepcopy(self._find(key))

    def _restore(self, key: Key, before: Item | None) -> None:
        backend = self._backend()
        table = backend.tables[key[0]]
        hash_key, range_key = backend.get_keys_value(table, key[1])
        if before is None:
            table.delete_item(hash_key, range_key)
            return
        items: Any = table.items
        if range_key:
            items[hash_key][range_key] = before
        else:
            items[hash_key] = before


def _measure_values(request: dict[str, Any]) -> int:
    return sum(map(measure_value, (request.get("ExpressionAttributeValues") or {}).values()))


def _bound(request: dict[str, Any], size: int) -> int:
    """No ordinary update makes an item larger than this: what is there copied once, and what is sent, with names."""
    return 2 * size + len(json.dumps(request).encode())
