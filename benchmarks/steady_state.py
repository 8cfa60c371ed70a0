"""AWS requests per target in the steady state of a job, counted on the real adapters over a local cloud."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
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
from sift.queue.ports import Received
from sift.queue.sqs import SqsDeadLetters, SqsQueue
from sift.services.advance import Advancer
from sift.services.control import Controller
from sift.services.fetching import FetchRunner
from sift.services.read import Reader
from sift.services.submit import Request, Submitter
from sift.services.terms import Terms
from sift.services.work import Worker
from sift.specs import Spec
from sift.store.dynamo import DynamoStore
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
        blueprint = make_blueprint(document, naming)
        self.cloud.provision(blueprint)
        self._attributes = dict(blueprint.queues["FetchQueue"].attributes)
        self.clients = {name: self.cloud.client(name) for name in ("dynamodb", "sqs", "s3", "events")}
        self.store = DynamoStore(self.clients["dynamodb"], naming.ref("JobsTable"))
        self.dead_letters = SqsDeadLetters(self.clients["sqs"], naming.ref("FetchDeadLetterQueue"))
        self.blobs = S3Blobs(self.clients["s3"], naming.ref("ContentBucket"))
        self.assembly = SqsQueue(self.clients["sqs"], naming.ref("AssembleQueue"))
        self.bus = EventBridgeBus(self.clients["events"], naming.ref("EventBus"))
        self.clock = SystemClock()
        self._numbers = itertools.count()
        self.change_queue()

    def change_queue(self) -> None:
        """Go on with an empty queue, so that what another job left does not count."""
        name = f"fetch-{next(self._numbers)}"
        self.queue_url: str = self.clients["sqs"].create_queue(QueueName=name, Attributes=self._attributes)["QueueUrl"]
        self.queue = SqsQueue(self.clients["sqs"], self.queue_url)
        limits = Limits(targets_per_job=9_000, jobs_per_caller=100, retained_jobs=1_000, job_bytes=2**30)
        terms = Terms(jobs_total=100, limits=limits, deadline_seconds=86_400)
        self.submitter = Submitter(self.store, self.queue, self.blobs, self.clock, terms)
        self.reader = Reader(self.store, self.blobs, self.clock)
        self.controller = Controller(self.reader, self.advancer(), self.store, self.clock)

    def advancer(self) -> Advancer:
        """As a process of its own has it."""
        return Advancer(self.store, self.queue, self.blobs, self.bus, self.clock, assembly=self.assembly)

    def worker(self, most_seconds: float) -> Worker:
        """As a process of its own has it; each of its fetches takes up to so many seconds."""

        async def fetch(url: str, options: Mapping[str, Any], deadline_s: float, *, gone: Any = None) -> Content:
            await asyncio.sleep(random.uniform(0, most_seconds))
            body = f"# {url}\n\n".encode() + b"A paragraph of an article. " * 100
            return Content(body, "text/markdown; charset=utf-8")

        return Worker(
            store=self.store, queue=self.queue, dead_letters=self.dead_letters, clock=self.clock,
            advancer=self.advancer(), runner=FetchRunner(fetch, self.blobs, self.clock), lease_seconds=100,
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


class Pump:
    """Hands batches of the queue to workers, as an event source mapping does under the load of many jobs: full ones,
    and less only when nothing else can come. What polls of an idle queue cost has nothing to do with targets."""

    def __init__(self, deployment: Deployment, workers: int, most_seconds: float) -> None:
        self._url = deployment.queue_url
        self._sqs = deployment.clients["sqs"]
        self._idle = [deployment.worker(most_seconds) for _ in range(workers)]
        self._busy: dict[asyncio.Task[None], Worker] = {}
        self._held: list[Received] = []
        self._backlog = 0
        self._lock = threading.Lock()

    async def run(self, most: int) -> None:
        """Until the queue is empty and nobody works, or this many messages have been handed over."""
        while True:
            while most > 0 and self._idle and await self._receive():
                most -= min(BATCH, len(self._held))
                batch, self._held = self._held[:BATCH], self._held[BATCH:]
                worker = self._idle.pop()
                self._busy[asyncio.create_task(self._invoke(worker, batch))] = worker
            if not self._busy:
                return
            done, _ = await asyncio.wait(self._busy, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                self._idle.append(self._busy.pop(task))
                task.result()

    def sent(self, parsed: Mapping[str, Any], **_: Any) -> None:
        """Told by the client after each SendMessageBatch."""
        with self._lock:
            self._backlog += len(parsed.get("Successful", ()))

    async def _receive(self) -> bool:
        """Whether there is a batch to hand over."""
        while (room := BATCH - len(self._held)) > 0:
            if self._backlog == 0 or (self._backlog < room and self._busy):
                break
            answer = await asyncio.to_thread(self._sqs.receive_message, QueueUrl=self._url, MaxNumberOfMessages=room)
            received = [Received(m["MessageId"], m["ReceiptHandle"], m["Body"]) for m in answer.get("Messages", [])]
            with self._lock:
                self._backlog -= len(received)
            self._held += received
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


async def run_job(
    deployment: Deployment, targets: int, workers: int, most_seconds: float = 0.0, worked: int | None = None
) -> Tally:
    """What the first `worked` targets of a job cost, from its submission; None: all, to its announced end.

    Workers of different processes that finish in the same moment may try to top up the window at once, of which all
    but one are refused: with more than one worker, fetches should take different times, as real ones do.
    """
    deployment.change_queue()
    events = deployment.clients["sqs"].meta.events
    pump = Pump(deployment, workers, most_seconds)
    events.register("after-call.sqs.SendMessageBatch", pump.sent)
    try:
        with deployment.counting() as tally:
            job_id = await deployment.submit(targets)
            await pump.run(targets if worked is None else worked)
    finally:
        events.unregister("after-call.sqs.SendMessageBatch", pump.sent)
    state = await deployment.store.get_state(job_id)
    if state is None or state.done != (worked or targets) or (state.status == "done") != (worked is None):
        raise AssertionError(f"the job is not where it should be: {state}")
    return tally


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="?", type=int, default=1_000)
    targets: int = parser.parse_args().targets
    deployment = Deployment()
    try:
        print(f"requests per target, {targets:,} targets      1 worker   4 workers   at most")
        tallies = [asyncio.run(run_job(deployment, targets, *how)) for how in ((1, 0.0), (4, 1.0))]
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
