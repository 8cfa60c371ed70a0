"""AWS requests per target in the steady state of a job, counted on the real adapters over a local cloud.

Nothing is timed: the counts are the same on every machine. `python benchmarks/steady_state.py [targets]` prints them.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sift.blobs.s3 import S3Blobs
from sift.clock import SystemClock
from sift.events.eventbridge import EventBridgeBus
from sift.identity import Identity, Limits
from sift.queue.sqs import SqsDeadLetters, SqsQueue
from sift.services.advance import Advancer
from sift.services.read import Reader
from sift.services.submit import Request, Submitter, Terms
from sift.services.work import Received, Worker
from sift.store.dynamo import DynamoStore
from sift.store.ports import Spec
from sift.targets import Content
from sift_client.local.cloud import Cloud
from sift_client.local.document import read_document
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint

TEMPLATE = Path(__file__).parents[1] / "template.yaml"
#: What the mapping of template.yaml takes at most (FetchBatchSize).
BATCH = 10
TABLE_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"})
TABLE_READS = frozenset({"GetItem", "Query", "BatchGetItem", "Scan", "TransactGetItems"})
CALLER = Identity("acme", "ann", "00000000000a")


@dataclass
class Tally:
    """Requests as they leave the clients, by service and operation; repeats of the SDK are not told apart."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def watch(self, client: Any) -> None:
        """Count every request of this client from now on."""
        client.meta.events.register("before-call", self._count)

    def unwatch(self, client: Any) -> None:
        client.meta.events.unregister("before-call", self._count)

    def _count(self, model: Any, params: Any, **_: Any) -> None:
        service = model.service_model.service_name
        with self._lock:
            self.requests[service, model.name] += 1

    def of(self, service: str, operations: frozenset[str] | None = None) -> int:
        return sum(
            count
            for (name, operation), count in self.requests.items()
            if name == service and (operations is None or operation in operations)
        )

    @property
    def table_writes(self) -> int:
        return self.of("dynamodb", TABLE_WRITES)

    @property
    def table_reads(self) -> int:
        return self.of("dynamodb", TABLE_READS)

    @property
    def queue(self) -> int:
        return self.of("sqs")


class Deployment:
    """The resources of template.yaml on a local cloud, and the parts of sift on top of them."""

    def __init__(self) -> None:
        self.cloud = Cloud()
        document = read_document(TEMPLATE, {})
        naming = Naming(document, "counts", self.cloud.account, self.cloud.url, "http://127.0.0.1:9")
        self.cloud.provision(make_blueprint(document, naming))
        self.clients = {name: self.cloud.client(name) for name in ("dynamodb", "sqs", "s3", "events")}
        self.queue_url: str = naming.ref("FetchQueue")
        self.store = DynamoStore(self.clients["dynamodb"], naming.ref("JobsTable"))
        self.queue = SqsQueue(self.clients["sqs"], self.queue_url)
        self.dead_letters = SqsDeadLetters(self.clients["sqs"], naming.ref("FetchDeadLetterQueue"))
        self.blobs = S3Blobs(self.clients["s3"], naming.ref("ContentBucket"))
        self.bus = EventBridgeBus(self.clients["events"], naming.ref("EventBus"))
        self.clock = SystemClock()
        limits = Limits(targets_per_job=9_000, jobs_per_caller=100, retained_jobs=1_000, job_bytes=2**30)
        terms = Terms(jobs_total=100, limits=limits, deadline_seconds=86_400, ttl_seconds=86_400)
        self.submitter = Submitter(self.store, self.queue, self.blobs, self.clock, terms)
        self.reader = Reader(self.store, self.advancer(), self.clock)

    def advancer(self) -> Advancer:
        """As a process of its own has it."""
        return Advancer(self.store, self.queue, self.blobs, self.bus, self.clock)

    def worker(self) -> Worker:
        """As a process of its own has it; what it fetches costs nothing."""
        return Worker(
            store=self.store, queue=self.queue, dead_letters=self.dead_letters, blobs=self.blobs, clock=self.clock,
            advancer=self.advancer(), fetch=fetch, lease_seconds=100,
        )  # fmt: skip

    async def submit(self, count: int, **values: Any) -> str:
        """The id of a new job of this many targets."""
        targets = [Spec(f"https://example.com/{number}") for number in range(count)]
        submitted = await self.submitter.submit(CALLER, Request(targets=targets, fresh=True, **values))
        return submitted.meta.job_id

    @contextmanager
    def counting(self) -> Iterator[Tally]:
        tally = Tally()
        for client in self.clients.values():
            tally.watch(client)
        try:
            yield tally
        finally:
            for client in self.clients.values():
                tally.unwatch(client)

    def close(self) -> None:
        self.cloud.close()


async def fetch(url: str, options: Mapping[str, Any], deadline_s: float) -> Content:
    """Content of a usual size, at once."""
    return Content(f"# {url}\n\n".encode() + b"A paragraph of an article. " * 100, "text/markdown; charset=utf-8")


class Pump:
    """Hands batches of the queue to workers, as the event source mapping does."""

    def __init__(self, deployment: Deployment, workers: int) -> None:
        self._url = deployment.queue_url
        self._sqs = deployment.clients["sqs"]
        self._idle = [deployment.worker() for _ in range(workers)]
        self._busy: dict[asyncio.Task[None], Worker] = {}
        self._held: list[Received] = []

    async def run(self) -> None:
        """Until the queue is empty and nobody works.

        What was received waits until it is a full batch or nothing else can come, as under the load of many jobs.
        """
        while True:
            while self._idle and await self._receive():
                batch, self._held = self._held[:BATCH], self._held[BATCH:]
                worker = self._idle.pop()
                self._busy[asyncio.create_task(self._invoke(worker, batch))] = worker
            if not self._busy:
                return
            done, _ = await asyncio.wait(self._busy, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                self._idle.append(self._busy.pop(task))
                task.result()

    async def _receive(self) -> bool:
        """Whether there is a batch to hand over. Every poll counts, those that find nothing as well."""
        while (room := BATCH - len(self._held)) > 0:
            answer = await asyncio.to_thread(
                self._sqs.receive_message, QueueUrl=self._url, MaxNumberOfMessages=room
            )
            messages = answer.get("Messages", [])
            if not messages:
                break
            self._held += [Received(m["MessageId"], m["ReceiptHandle"], m["Body"]) for m in messages]
        return bool(self._held) and (len(self._held) == BATCH or not self._busy)

    async def _invoke(self, worker: Worker, batch: list[Received]) -> None:
        kept = await worker.run_batch(batch, lambda: 90.0)
        entries = [
            {"Id": str(number), "ReceiptHandle": received.receipt}
            for number, received in enumerate(batch)
            if received.message_id not in kept
        ]
        if entries:
            await asyncio.to_thread(self._sqs.delete_message_batch, QueueUrl=self._url, Entries=entries)


async def run_job(deployment: Deployment, targets: int, workers: int) -> Tally:
    """What a job costs from its submission to its announced end."""
    with deployment.counting() as tally:
        job_id = await deployment.submit(targets)
        await Pump(deployment, workers).run()
    state = await deployment.store.get_state(job_id)
    if state is None or (state.status, state.done) != ("done", targets):
        raise AssertionError(f"the job did not end as it should: {state}")
    return tally


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="?", type=int, default=1_000)
    targets: int = parser.parse_args().targets
    deployment = Deployment()
    try:
        print(f"requests per target, {targets:,} targets      1 worker   4 workers   at most")
        tallies = [asyncio.run(run_job(deployment, targets, workers)) for workers in (1, 4)]
        for name, most, counts in (
            ("table writes", 3.1, [tally.table_writes for tally in tallies]),
            ("table reads", 0.1, [tally.table_reads for tally in tallies]),
            ("queue requests", 0.4, [tally.queue for tally in tallies]),
        ):
            one, four = (count / targets for count in counts)
            print(f"  {name:<38}{one:>10.4f}{four:>12.4f}{most:>10}")
        print("by operation")
        for service, operation in sorted(set().union(*(tally.requests for tally in tallies))):
            one, four = (tally.requests[service, operation] / targets for tally in tallies)
            print(f"  {service + ' ' + operation:<38}{one:>10.4f}{four:>12.4f}")
    finally:
        deployment.close()


if __name__ == "__main__":
    main()
