"""Jobs run through the real functions over a local cloud, with everything that costs money counted.

The functions of API and worker are called as Lambda calls them, one invocation after the other, with full batches as
a mapping makes them under load. In place of the pipeline there is text of a given size, at once: what a fetch takes
is an assumption of `cost.py`, and nothing else is.
"""

from __future__ import annotations

import functools
import io
import os
import random
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.ledger import API_UNIT, Ledger, item_size
from sift import environment
from sift.bootstrap import fetching
from sift.targets import Content, FetchOptions
from tests.integration.api.stage import Deployment, Reply, Stage, context, forget_process, read_event

BATCH = 10
BUDGET = 10 * 2**30
_PARAMETERS = {"TARGETS_PER_JOB": "9000", "MAX_JOB_BYTES": str(BUDGET), "POWERTOOLS_LOG_LEVEL": "INFO"}
_NAMES = {"POWERTOOLS_SERVICE_NAME": "sift", "POWERTOOLS_METRICS_NAMESPACE": "sift/sift"}


@dataclass
class Calls:
    """Invocations of one function: processor seconds of its own thread, and AWS requests one after the other."""

    count: int = 0
    processor_s: float = 0.0
    aws_requests: int = 0


@dataclass(frozen=True)
class Idle:
    """What one call costs: a sweep that finds nothing to do, or a status read."""

    ledger: Ledger
    api: Calls


@dataclass(frozen=True)
class Run:
    """What one job cost, from its submission to the caller's last page; `look` is one more status read.

    `stored`: bytes of it in the table. `answered`: bytes of the API's answers.
    """

    targets: int
    content_bytes: int
    compressed_bytes: int
    ledger: Ledger
    api: Calls
    fetch: Calls
    look: Idle
    stored: int
    answered: int

    @property
    def batch(self) -> float:
        """Targets an invocation of the worker."""
        return self.targets / self.fetch.count


@dataclass
class Output(io.TextIOBase):
    """Takes the place of standard output, where functions write log lines and metrics, and counts their bytes."""

    written: int = field(default=0)

    def write(self, text: str) -> int:
        self.written += len(text.encode())
        return len(text)


@functools.cache
def _words() -> tuple[list[str], list[float]]:
    random_ = random.Random(7)
    letters, weights = "etaoinshrdlucmfwypvbgk", [12, 9, 8, 8, 7, 7, 6, 6, 6, 4, 4, 3, 3, 2, 2, 2, 2, 2, 1, 1.5, 2, 0.8]
    words = [
        "".join(random_.choices(letters, weights, k=random_.choice((2, 3, 4, 5, 6, 7, 8, 9)))) for _ in range(4_000)
    ]
    return words, [1 / (rank + 2) for rank in range(len(words))]


def make_text(size: int, seed: int) -> bytes:
    """Markdown of so many bytes that compresses about as pages do: to 45 % at 5 KB."""
    random_ = random.Random(seed)
    words, weights = _words()
    parts = [f"# {' '.join(random_.choices(words, k=6))}\n\n"]
    length = len(parts[0])
    while length < size:
        sentence = " ".join(random_.choices(words, weights, k=random_.randint(6, 22))).capitalize() + "."
        part = (
            f"[{sentence}](https://www.example.com/{random_.getrandbits(40):x}) "
            if random_.random() < 0.02
            else f"{sentence} "
        )
        parts.append(part + ("\n\n" if random_.random() < 0.15 else ""))
        length += len(parts[-1])
    return "".join(parts).encode()[:size]


class Texts:
    """Stands where the pipeline does: 64 texts in turn, with the envelope that a page gets."""

    def __init__(self, size: int) -> None:
        self.texts = [make_text(size, seed) for seed in range(64)]

    async def run(self, url: str, options: FetchOptions, deadline_s: float, *, gone: Any = None) -> Content:
        body = self.texts[zlib.crc32(url.encode()) % len(self.texts)]
        title = body[2 : body.index(b"\n")].decode()
        meta = {
            "url": url, "final_url": url, "status": 200, "media_type": "text/html", "charset": "utf-8", "title": title,
            "author": "A. Writer", "published": "2026-05-04", "language": "en", "description": f"{title}, in short.",
            "canonical": url, "bytes": 24_000, "chars": len(body), "truncated": False, "redirects": 0,
            "fetched_at": "2026-05-04T03:02:01Z", "elapsed_ms": 1_500, "warnings": [],
        }  # fmt: skip
        return Content(body, "text/markdown; charset=utf-8", meta)


class Account:
    """A deployment of the template on a local cloud, whose functions write to `output`. One at a time in a process."""

    def __init__(self) -> None:
        self.output = Output()
        self._before = dict(os.environ)
        os.environ.update({**_NAMES, **_PARAMETERS})
        shown, sys.stdout = sys.stdout, self.output
        try:
            self.deployment = Deployment()
        finally:
            sys.stdout = shown

    def close(self) -> None:
        forget_process()
        self.deployment.cloud.close()
        os.environ.clear()
        os.environ.update(self._before)

    def run(self, targets: int, content_bytes: int) -> Run:
        """One job of so many targets, each with so much content."""
        texts = Texts(content_bytes)
        stage = Stage(self.deployment)
        os.environ.update({**stage.environ, **_PARAMETERS})
        forget_process()
        with _pipeline(texts), _stdout(self.output):
            meter = Meter(stage, self.output)
            with meter.ledger.watching([*_clients(), meter.mapping]):
                job_id = meter.submit(targets)
                meter.work()
                meter.read(job_id, targets)
            extra = Meter(stage, self.output)
            with extra.ledger.watching(_clients()):
                extra.look(job_id)
        stored = _table_bytes(stage)
        compressed = sum(len(zlib.compress(text, 6)) for text in texts.texts) // len(texts.texts)
        look = Idle(extra.ledger, extra.api)
        return Run(
            targets, content_bytes, compressed, meter.ledger, meter.api, meter.fetch, look, stored, meter.answered
        )

    def idle(self) -> Idle:
        """One sweep over a table without live jobs."""
        stage = Stage(self.deployment)
        os.environ.update({**stage.environ, **_PARAMETERS})
        forget_process()
        meter = Meter(stage, self.output)
        with _stdout(self.output), meter.ledger.watching(_clients()):
            meter.sweep()
        return Idle(meter.ledger, meter.sweeps)

    def memory(self) -> dict[str, int]:
        """Megabytes of the functions, as the template has them."""
        functions = self.deployment.blueprint.functions
        names = {"worker_mb": "FetchFunction", "api_mb": "ApiFunction", "sweep_mb": "SweepFunction"}
        return {word: functions[name].memory for word, name in names.items()}


class Meter:
    """Calls the functions of one stage and counts what a bill would."""

    def __init__(self, stage: Stage, output: Output) -> None:
        self.ledger = Ledger()
        self.api = Calls()
        self.fetch = Calls()
        self.sweeps = Calls()
        self.answered = 0
        self.mapping = stage.deployment.client("sqs")
        self._stage = stage
        self._output = output

    def submit(self, targets: int) -> str:
        random_ = random.Random(0)
        urls = [f"https://www.example.com/{n // 100}/{random_.getrandbits(64):016x}-an-article" for n in range(targets)]
        reply = self._ask("POST", "/v1/jobs", {"targets": [{"url": url} for url in urls], "fresh": True})
        if reply.status != 202:
            raise AssertionError(reply.raw)
        job_id: str = reply.json["id"]
        return job_id

    def work(self) -> None:
        """Until the queue is empty: full batches while there are any, as under the load of many jobs."""
        while records := self._receive():
            answer = self._invoke(self.fetch, "fetch", {"Records": records})
            if answer["batchItemFailures"]:
                raise AssertionError(answer)
            entries = [{"Id": str(n), "ReceiptHandle": one["receiptHandle"]} for n, one in enumerate(records)]
            self.mapping.delete_message_batch(QueueUrl=self._stage.queue_url, Entries=entries)

    def read(self, job_id: str, targets: int) -> None:
        """The job's status once it has ended, and all its contents page by page."""
        job = self._ask("GET", f"/v1/jobs/{job_id}").json
        if job["status"] != "done" or job["counts"]["done"] != targets:
            raise AssertionError(job)
        seen = 0
        cursor: dict[str, str] = {}
        while True:
            page = self._ask("GET", f"/v1/jobs/{job_id}/targets", content=True, limit=1_000, **cursor).json
            seen += sum(1 for slot in page["targets"] if slot.get("content"))
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        if seen != targets:
            raise AssertionError(f"{seen} of {targets} contents")

    def look(self, job_id: str) -> None:
        """One status read."""
        self._ask("GET", f"/v1/jobs/{job_id}")

    def sweep(self) -> None:
        """One run of the sweeper."""
        self._invoke(self.sweeps, "sweep", read_event("sweep-schedule"))

    def _receive(self) -> list[dict[str, Any]]:
        answer = self.mapping.receive_message(
            QueueUrl=self._stage.queue_url, MaxNumberOfMessages=BATCH, AttributeNames=["All"]
        )
        template = read_event("fetch-batch")["Records"][0]
        return [
            {**template, "messageId": m["MessageId"], "receiptHandle": m["ReceiptHandle"], "body": m["Body"],
             "attributes": m["Attributes"]}
            for m in answer.get("Messages", ())
        ]  # fmt: skip

    def _ask(self, method: str, path: str, body: Any = None, **query: Any) -> Reply:
        replies: list[Reply] = []
        with self._counting(self.api):
            replies.append(self._stage.request(method, path, body, **query))
        reply = replies[0]
        self.ledger.add(api_request=-(-max(reply.size, 1) // API_UNIT))
        self.answered += reply.size
        return reply

    def _invoke(self, calls: Calls, name: str, event: dict[str, Any]) -> dict[str, Any]:
        with self._counting(calls):
            answer: dict[str, Any] = self._stage.deployment.functions[name].lambda_handler(event, context())
        return answer

    @contextmanager
    def _counting(self, calls: Calls) -> Iterator[None]:
        requests, written, started = self.ledger.requests.total(), self._output.written, time.thread_time()
        yield
        calls.count += 1
        calls.processor_s += time.thread_time() - started
        calls.aws_requests += self.ledger.requests.total() - requests
        self.ledger.add(lambda_request=1, log_bytes=self._output.written - written)


def _clients() -> list[Any]:
    """Those that the functions have."""
    return [environment.client(service) for service in ("dynamodb", "sqs", "s3", "events")]


@contextmanager
def _pipeline(texts: Texts) -> Iterator[None]:
    """The worker is put together with these texts for a pipeline."""
    real = fetching.make_pipeline
    fetching.make_pipeline = lambda config: texts
    try:
        yield
    finally:
        fetching.make_pipeline = real


@contextmanager
def _stdout(output: Output) -> Iterator[None]:
    shown, sys.stdout = sys.stdout, output
    try:
        yield
    finally:
        sys.stdout = shown


def _table_bytes(stage: Stage) -> int:
    pages = stage.deployment.client("dynamodb").get_paginator("scan").paginate(TableName=stage.table)
    return sum(item_size(item) for page in pages for item in page["Items"])
