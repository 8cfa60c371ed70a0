"""What a request of an inference job costs over asking the gateway directly, in time, memory and table writes."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import resource
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import boto3
import httpx2
from botocore.config import Config

from benchmarks.steady_state import CALLER, Deployment, Tally, run_job
from sift.blob_keys import content_key
from sift.blobs.memory import MemoryBlobs
from sift.blobs.s3 import S3Blobs
from sift.clock import SystemClock
from sift.events.memory import MemoryBus
from sift.gateway import Gateway
from sift.identity import Limits
from sift.model_requests import UpstreamRequest, read_request
from sift.queue.memory import MemoryQueue
from sift.queue.ports import Received
from sift.services.advance import Advancer
from sift.services.inferring import InferenceRunner
from sift.services.submit import Request, Submitter
from sift.services.terms import Terms
from sift.services.work import Worker
from sift.specs import RequestSpec
from sift.store.memory import MemoryStore
from sift.upstream import Upstream
from tests.integration.content.authority import Authority
from tests.integration.upstream.stub import StubGateway

PATH = "/v1/chat/completions"
IDENTITY = {"tenant": "acme", "actor": "ann"}
#: Requests at once: a batch of the queue.
CONCURRENCY = 10
RESPONSES, RESPONSE_BYTES = 20, 50 * 1024 * 1024
#: Per request: worker time in ms over asking directly, and table writes.
GOAL_MS, GOAL_WRITES = 15, 4
ROUNDS, ROUND_REQUESTS = 5, 200
_MIB = 1 << 20
_TERMS = Terms(
    jobs_total=100,
    limits=Limits(targets_per_job=9_000, jobs_per_caller=100, retained_jobs=1_000, job_bytes=2**33),
    deadline_seconds=86_400,
    paths=("/v1/*",),
)


# --- the other side, in a process of its own ---


def _serve(pipe: Any, folder: str | None) -> None:
    authority = Authority(Path(folder)) if folder else None
    stub = StubGateway(authority.serve_as("127.0.0.1") if authority else None)
    pipe.send((stub.url(), str(authority.ca_file) if authority else None))
    pipe.recv()
    stub.close()


@contextmanager
def gateway(folder: str | None = None) -> Iterator[tuple[str, ssl.SSLContext]]:
    """The base address of the tests' gateway, which answers at once, and whom to trust there.

    It speaks TLS when there is a folder for certificates.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, folder), daemon=True)
    process.start()
    try:
        url, authority = ours.recv()
        yield url, ssl.create_default_context(cafile=authority)
    finally:
        ours.send("enough")
        process.join()


def make_upstream(url: str, tls: ssl.SSLContext | None = None) -> Upstream:
    """As the function has it, with a gateway that wants no token."""
    return Upstream(Gateway(url, None, tls or ssl.create_default_context()))


# --- memory ---


@asynccontextmanager
async def sink() -> AsyncIterator[tuple[str, list[int]]]:
    """A place to PUT to, which counts and forgets; its address, and the sizes of what came. Its clients leave first."""
    sizes: list[int] = []
    ends: list[asyncio.Event] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends.append(asyncio.Event())
        end = ends[-1]
        while head := await _head(reader):
            lines = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            if "100-continue" in lines.get("expect", ""):
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            size = rest = int(lines["content-length"])
            while rest:
                rest -= len(await reader.read(min(rest, 65_536)))
            sizes.append(size)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        writer.close()
        await writer.wait_closed()
        end.set()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", sizes
        await asyncio.gather(*(end.wait() for end in ends))


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return ""


async def spool_and_store(url: str, responses: int, size: int) -> tuple[float, float]:
    """The most memory (MiB) that the process had before and after so many responses, ten at once."""
    turns = asyncio.Semaphore(CONCURRENCY)
    async with sink() as (bucket, sizes):
        options = Config(retries={"total_max_attempts": 1}, max_pool_connections=CONCURRENCY, proxies={})
        client: Any = boto3.client(
            "s3", endpoint_url=bucket, region_name="eu-north-1", aws_access_key_id="k", aws_secret_access_key="s",
            config=options,
        )  # fmt: skip
        blobs, upstream = S3Blobs(client, "content"), make_upstream(url)

        async def one(number: int, size: int) -> None:
            body = f'{{"stub": {{"size": {size}}}}}'.encode()
            async with turns, upstream.send(UpstreamRequest(PATH, body, IDENTITY, f"m{number}"), 600) as response:
                if response.size != size or response.usage is None:
                    raise AssertionError(f"not what was asked for: {response}")
                await blobs.put_file(content_key("job", number, 1), response.file, response.media_type)

        await asyncio.gather(*(one(-number, 100_000) for number in range(CONCURRENCY)))
        before = peak()
        await asyncio.gather(*(one(number, size) for number in range(responses)))
        client.close()
        if sum(found >= size for found in sizes) != responses:
            raise AssertionError(f"not all was stored: {sizes}")
        return before, peak()


def peak() -> float:
    """The most memory of this process so far, in MiB."""
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found / (1 if sys.platform != "darwin" else 1024) / 1024


# --- time ---

Ask = Callable[[int], Awaitable[None]]


async def timed(ask: Ask, requests: int) -> tuple[float, float]:
    """Wall and processor milliseconds per request, ten at once."""
    numbers = iter(range(requests))

    async def lane() -> None:
        for number in numbers:
            await ask(number)

    gc.collect()
    wall, processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*(lane() for _ in range(CONCURRENCY)))
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return 1000 * wall / requests, 1000 * processor / requests


async def directly(url: str, requests: int, tls: ssl.SSLContext | None = None) -> tuple[float, float]:
    """One client for all, which keeps its connections, as one would write it by hand."""
    limits = httpx2.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
    async with httpx2.AsyncClient(
        verify=tls or ssl.create_default_context(), trust_env=False, limits=limits, timeout=600
    ) as client:

        async def ask(_: int) -> None:
            (await client.post(f"{url}/chat/completions", json={"model": "m"})).raise_for_status()

        return await timed(ask, requests)


async def sent(url: str, requests: int, tls: ssl.SSLContext | None = None) -> tuple[float, float]:
    """The client alone."""
    upstream = make_upstream(url, tls)

    async def ask(number: int) -> None:
        request = UpstreamRequest(PATH, b'{"model":"m"}', IDENTITY, f"s{number}")
        async with upstream.send(request, 600) as response:
            response.file.read()

    return await timed(ask, requests)


async def worked(url: str, requests: int, tls: ssl.SSLContext | None = None) -> tuple[float, float]:
    """The whole worker, over ports in memory: what is left out is what AWS takes."""
    store, clock, blobs = MemoryStore(), SystemClock(), MemoryBlobs()
    queue = MemoryQueue(clock)
    advancer = Advancer(store, queue, blobs, MemoryBus(), clock, assembly=MemoryQueue(clock))
    worker = Worker(
        store=store, queue=queue, dead_letters=queue, clock=clock, advancer=advancer, lease_seconds=910,
        runner=InferenceRunner(make_upstream(url, tls), store, blobs, clock, 600.0),
    )  # fmt: skip
    submitted = await Submitter(store, queue, blobs, clock, _TERMS).submit(CALLER, Request(specs(requests)))
    gc.collect()
    wall, processor = time.perf_counter(), time.process_time()
    while batch := [Received(receipt, receipt, found.body) for receipt, found in queue.receive(CONCURRENCY)]:
        for receipt in {one.receipt for one in batch} - set(await worker.run_batch(batch, lambda: 900.0)):
            queue.delete(receipt)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    state = await store.get_state(submitted.meta.job_id)
    if state is None or (state.status, state.done) != ("done", requests):
        raise AssertionError(f"the job is not done: {state}")
    return 1000 * wall / requests, 1000 * processor / requests


def specs(count: int) -> list[RequestSpec]:
    """Requests that the gateway answers at once."""
    return [read_request(number, PATH, "m", {"n": number}) for number in range(count)]


# --- requests to AWS ---


class Asking(Deployment):
    """The resources of template.yaml, with workers that ask a gateway."""

    def __init__(self, url: str) -> None:
        self._url = url
        super().__init__()

    def worker(self, most_seconds: float) -> Worker:
        runner = InferenceRunner(make_upstream(self._url), self.store, self.blobs, self.clock, 600.0)
        return Worker(
            store=self.store, queue=self.queue, dead_letters=self.dead_letters, clock=self.clock,
            advancer=self.advancer(), runner=runner, lease_seconds=100,
        )  # fmt: skip

    async def submit(self, count: int, **values: Any) -> str:
        submitter = Submitter(self.store, self.queue, self.blobs, self.clock, _TERMS)
        submitted = await submitter.submit(CALLER, Request(specs(count), fresh=True, **values))
        return submitted.meta.job_id


def count_requests(url: str, requests: int) -> Tally:
    """What a job of so many requests asks of AWS, from its submission to its announced end."""
    deployment = Asking(url)
    try:
        return asyncio.run(run_job(deployment, requests, workers=1))
    finally:
        deployment.close()


def compare(url: str, tls: ssl.SSLContext) -> None:
    """Print what each way takes, in turns."""
    ways = {"directly": directly, "upstream.send": sent, "whole worker": worked}
    for way in ways.values():
        asyncio.run(way(url, CONCURRENCY, tls))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            found[name].append(asyncio.run(way(url, ROUND_REQUESTS, tls)))
    wall, processor = (
        {name: statistics.median(r[n] for r in rounds) for name, rounds in found.items()} for n in (0, 1)
    )
    for name in ways:
        ratio = wall[name] / wall["directly"]
        print(
            f"  {name:<16}{wall[name]:>8.2f}{wall[name] - wall['directly']:>+8.2f}{ratio:>6.1f}x"
            f"{processor[name]:>12.2f}{processor[name] - processor['directly']:>+8.2f}"
        )


def main() -> None:
    """Print it all."""
    with gateway() as (url, tls):
        before, after = asyncio.run(spool_and_store(url, RESPONSES, RESPONSE_BYTES))
        print(f"{RESPONSES} responses of {RESPONSE_BYTES // _MIB} MiB, {CONCURRENCY} at once, spooled and stored")
        print(f"  peak memory {before:.0f} MiB before, {after:.0f} MiB after: {after - before:+.1f} MiB")
        print(f"ms a request, {CONCURRENCY} at once, {ROUNDS} rounds of {ROUND_REQUESTS} (goal: {GOAL_MS} over)")
        print("                     wall    over         processor    over")
        compare(url, tls)
        tally = count_requests(url, 200)
    with tempfile.TemporaryDirectory() as folder, gateway(folder) as (url, tls):
        print("over TLS")
        compare(url, tls)
    print(f"requests to AWS for each request of 200 (goal: {GOAL_WRITES} table writes)")
    counts = {"table writes": tally.table_writes, "table reads": tally.table_reads, "queue": tally.queue}
    for name, count in counts.items():
        print(f"  {name:<16}{count / 200:>8.3f}")


if __name__ == "__main__":
    main()
