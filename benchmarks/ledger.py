"""Everything that AWS would charge for, counted where requests leave the clients.

Units are computed from what is sent and answered, by the rules of the DynamoDB, SQS and S3 developer guides; a local
cloud charges none. Repeats by the SDK are not told apart: on a local cloud there are none.
"""

from __future__ import annotations

import base64
import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

#: What an update is taken to touch where neither request nor answer holds the item: the small sets of live jobs.
UPDATED_BYTES = 1_024
WRITE_UNIT = 1_024
READ_UNIT = 4_096
#: An entry of a list of jobs, for a query that only counts them.
LISTED_BYTES = 128
QUEUE_UNIT = 65_536
API_UNIT = 524_288
_BODY = "sift.body"


class Ledger:
    """`quantities` by the names of prices.toml, `requests` by service and operation, `sent` and `received` bytes."""

    def __init__(self) -> None:
        self.quantities: Counter[str] = Counter()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.sent = 0
        self.received = 0
        self._lock = threading.Lock()

    @contextmanager
    def watching(self, clients: Iterable[Any]) -> Iterator[None]:
        """Count the requests of these clients."""
        watched = list(clients)
        for client in watched:
            client.meta.events.register("before-call", self.before)
            client.meta.events.register("after-call", self.after)
        try:
            yield
        finally:
            for client in watched:
                client.meta.events.unregister("before-call", self.before)
                client.meta.events.unregister("after-call", self.after)

    def before(self, params: Mapping[str, Any], context: dict[str, Any], **_: Any) -> None:
        """Hook of a client, before a request is sent: its body is kept until the answer is there."""
        context[_BODY] = params["body"]

    def after(self, model: Any, parsed: Mapping[str, Any], context: dict[str, Any], **_: Any) -> None:
        """Hook of a client, after each answer, refusals included."""
        service, operation, body = model.service_model.service_name, model.name, context.pop(_BODY)
        size = _length(body)
        if service in ("dynamodb", "sqs"):
            units: Mapping[str, float] = _UNITS[service](operation, json.loads(body), parsed)
        else:
            units = _OBJECTS.get(operation, {})
        with self._lock:
            self.requests[service, operation] += 1
            self.sent += size
            if operation == "GetObject":
                self.received += int(parsed.get("ContentLength", 0))
            self.quantities.update(units)

    def add(self, **quantities: float) -> None:
        """Count what no client shows."""
        with self._lock:
            self.quantities.update(quantities)


_OBJECTS: Mapping[str, Mapping[str, float]] = {
    "PutObject": {"object_put": 1},
    "GetObject": {"object_get": 1},
    "HeadObject": {"object_get": 1},
}


def _length(body: Any) -> int:
    if hasattr(body, "seek"):  # what S3 is given
        at = body.tell()
        end = int(body.seek(0, 2))
        body.seek(at)
        return end - int(at)
    return len(body if isinstance(body, bytes | bytearray) else str(body).encode())


def table_units(operation: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, float]:
    """Write and read units of one request to the table. Raises KeyError for an operation that nobody thought of."""
    match operation:
        case "PutItem":
            return {"table_write_unit": write_units(item_size(request["Item"]))}
        case "UpdateItem":
            item = answer.get("Attributes") or answer.get("Item")
            return {"table_write_unit": write_units(item_size(item) if item else UPDATED_BYTES)}
        case "DeleteItem":
            return {"table_write_unit": write_units(UPDATED_BYTES)}
        case "TransactWriteItems":
            return {"table_write_unit": sum(2 * _written(write) for write in request["TransactItems"])}
        case "BatchWriteItem":
            writes = [write for table in request["RequestItems"].values() for write in table]
            return {"table_write_unit": sum(_written(write) for write in writes)}
        case "GetItem":
            found = answer.get("Item")
            return _read([item_size(found) if found else 0], request.get("ConsistentRead"))
        case "BatchGetItem":
            strong = any(table.get("ConsistentRead") for table in request["RequestItems"].values())
            asked = sum(len(table["Keys"]) for table in request["RequestItems"].values())
            sizes = [item_size(item) for items in answer.get("Responses", {}).values() for item in items]
            return _read(
                sizes + [0] * (asked - len(sizes)), strong
            )  # a key without an item costs as much as a small one
        case "Query":
            items = answer.get("Items", [])
            # What a filter or a count left out is read all the same.
            unseen = int(answer.get("ScannedCount", len(items))) - len(items)
            return _read([sum(map(item_size, items)) + unseen * LISTED_BYTES], request.get("ConsistentRead"))
    raise KeyError(operation)


def write_units(size: int) -> int:
    """Of an item of so many bytes."""
    return max(1, -(-size // WRITE_UNIT))


def _written(write: Mapping[str, Any]) -> int:
    ((_, request),) = write.items()
    return write_units(item_size(request["Item"]) if "Item" in request else UPDATED_BYTES)


def _read(sizes: Iterable[int], strong: bool | None) -> dict[str, float]:
    units = sum(max(1, -(-size // READ_UNIT)) for size in sizes)
    return {"table_read_unit": units if strong else units / 2}


def queue_units(operation: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, float]:
    """Requests to the queue as SQS charges them: 64 KB of payload each, with the surcharge of message groups."""
    bodies = [entry["MessageBody"] for entry in request.get("Entries", ()) if "MessageBody" in entry]
    bodies += [message["Body"] for message in answer.get("Messages", ())]
    payload = sum(len(body.encode()) for body in bodies)
    requests = max(1, -(-payload // QUEUE_UNIT))
    return {"queue_request": requests, "queue_fair_request": requests}


_UNITS = {"dynamodb": table_units, "sqs": queue_units}


def item_size(item: Mapping[str, Any]) -> int:
    """About the bytes of an item as stored: names and values in UTF-8, and a little for each map and list."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return len(content) // 2 + 2
        case "B":
            return len(content if isinstance(content, bytes) else base64.b64decode(content))
        case "M":
            return 3 + item_size(content) + len(content)
        case "L":
            return 3 + sum(_value_size(one) + 1 for one in content)
        case "SS":
            return sum(len(one.encode()) for one in content)
        case "BOOL" | "NULL":
            return 1
    raise KeyError(kind)
