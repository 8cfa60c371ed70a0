"""What the submission of a job costs by its size, counted on the real adapters over a local cloud."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.ledger import UPDATED_BYTES, item_size
from benchmarks.steady_state import CALLER, Deployment
from sift.services.submit import Request
from sift.specs import Spec

SIZES = (32, 1_000, 9_000)


@dataclass
class Cost:
    """Requests by operation, the bytes of their bodies, and what DynamoDB would charge for them.

    `units`: write units, one per KB and item, twice that in a transaction (DynamoDB Developer Guide).
    """

    requests: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    units: int = 0

    @property
    def writes(self) -> int:
        """Requests that change the table."""
        return sum(self.requests[name] for name in ("TransactWriteItems", "BatchWriteItem", "PutItem", "UpdateItem"))

    @property
    def total(self) -> int:
        return self.requests.total()

    def add(self, model: Any, params: Mapping[str, Any], **_: Any) -> None:
        """Hook of a client's `before-call`."""
        body = params["body"] if isinstance(params["body"], bytes) else str(params["body"]).encode()
        self.requests[model.name] += 1
        self.bytes += len(body)
        if model.name == "TransactWriteItems":
            self.units += sum(2 * _units(item) for item in json.loads(body)["TransactItems"])
        elif model.name == "BatchWriteItem":
            self.units += sum(_units(write) for table in json.loads(body)["RequestItems"].values() for write in table)


def _units(write: Mapping[str, Any]) -> int:
    ((_, request),) = write.items()
    size = item_size(request["Item"]) if "Item" in request else UPDATED_BYTES
    return -(-size // 1_024)


def make_request(count: int, seed: int = 0) -> Request:
    """A job of addresses as they are: alike in their beginning, and each with a part that does not compress."""
    random_ = random.Random(seed)
    targets = [
        Spec(f"https://www.example.com/archive/{number // 100}/{random_.getrandbits(64):016x}-an-article.html")
        for number in range(count)
    ]
    return Request(targets=targets)


@contextmanager
def costing(deployment: Deployment) -> Iterator[Cost]:
    """What everything in it costs."""
    cost = Cost()
    for client in deployment.clients.values():
        client.meta.events.register("before-call", cost.add)
    try:
        yield cost
    finally:
        for client in deployment.clients.values():
            client.meta.events.unregister("before-call", cost.add)


async def submit(deployment: Deployment, request: Request, *, reused: bool = False) -> Cost:
    """The cost of one submission."""
    with costing(deployment) as cost:
        submitted = await deployment.submitter.submit(CALLER, request)
    if submitted.reused != reused:
        raise AssertionError("the submission was not what it was taken for")
    return cost


def main() -> None:
    """Print the counts."""
    deployment = Deployment()
    try:
        columns = ("requests", "commits", "writes", "units", "KB sent", "units/target", "again")
        print(f"{'targets':>8}" + "".join(f"{name:>14}" for name in columns))
        for size in SIZES:
            request = make_request(size)
            cost = asyncio.run(submit(deployment, request))
            again = asyncio.run(submit(deployment, request, reused=True))
            values = [cost.total, cost.requests["TransactWriteItems"], cost.writes, cost.units, cost.bytes // 1_024]
            row = [*map(str, values), f"{cost.units / size:.3f}", f"{again.total} reads, {again.writes} w"]
            print(f"{size:>8,}" + "".join(f"{value:>14}" for value in row))
            print("          " + ", ".join(f"{name} {count}" for name, count in sorted(cost.requests.items())))
    finally:
        deployment.close()


if __name__ == "__main__":
    main()
