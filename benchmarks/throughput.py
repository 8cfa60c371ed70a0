"""Targets per second of one fetch worker over a local site, beside Scrapy and aiohttp with trafilatura.

Guard and child processes are on, and each target goes through claim, outcome and finish. The job is kept in memory,
so that sift is measured and not a local cloud; `--moto` runs it once more on one. All run on the same two cores, with
the server of the site, one after the other. Needs `make .venv-throughput/.installed` for the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.loopback import LOOPBACK, open_pipeline
from sift.blobs.memory import MemoryBlobs
from sift.blobs.ports import Blobs
from sift.bootstrap.fetching import fetch_with
from sift.clock import SystemClock
from sift.events.memory import MemoryBus
from sift.identity import Identity, Limits
from sift.queue.memory import MemoryQueue
from sift.queue.ports import Received
from sift.services.advance import Advancer
from sift.services.fetching import FetchRunner
from sift.services.submit import Request, Submitter
from sift.services.terms import Terms
from sift.services.work import Worker
from sift.specs import Spec
from sift.store.memory import MemoryStore
from sift.store.ports import Store

ROOT = Path(__file__).parents[1]
PAGES = 2_000
BATCH = 10
ROUNDS = 3
GOAL = 0.9
OTHERS = ROOT / ".venv-throughput" / "bin" / "python"
#: No plain crawler: it spreads extraction over both cores, as sift's children do, and guards and isolates nothing.
POOL = "aiohttp + trafilatura in two processes"
#: By name: the program of another, and its arguments after the site and the number of pages.
RIVALS = {
    "Scrapy + trafilatura": ("throughput_scrapy.py",),
    "aiohttp + trafilatura": ("throughput_aiohttp.py", "0"),
    POOL: ("throughput_aiohttp.py", "2"),
}


@dataclass(frozen=True)
class Speed:
    """One run: `processor` seconds are those of all its processes, the server's left out."""

    seconds: float
    processor: float
    pages: int
    chars: int

    @property
    def rate(self) -> float:
        """Targets a second, by the clock."""
        return self.pages / self.seconds

    @property
    def work(self) -> float:
        """Targets for each second of the processor: what others on the machine change least."""
        return self.pages / self.processor


@contextmanager
def site(pages: int) -> Iterator[int]:
    """The site in a process of its own; its port."""
    command = [sys.executable, "-m", "benchmarks.throughput_site", str(pages)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


async def _run_sift(port: int, pages: int, store: Store, blobs: Blobs, children: int) -> Speed:
    clock, queue, bus = SystemClock(), MemoryQueue(SystemClock()), MemoryBus()
    advancer = Advancer(store, queue, blobs, bus, clock, assembly=MemoryQueue(clock))
    limits = Limits(targets_per_job=pages, jobs_per_caller=2, retained_jobs=10, job_bytes=2**30)
    submitter = Submitter(store, queue, blobs, clock, Terms(8, limits, 86_400))
    async with open_pipeline(port, children=children) as (pipeline, _):
        worker = Worker(
            store=store, queue=queue, dead_letters=queue, clock=clock, advancer=advancer,
            runner=FetchRunner(fetch_with(pipeline.run), blobs, clock), lease_seconds=100,
        )  # fmt: skip
        for count in (BATCH, pages):  # the first starts the fork server, which an environment does once
            targets = [Spec(f"http://{LOOPBACK}:{port}/{number}", {"mode": "article"}) for number in range(count)]
            request = Request(targets=targets, fresh=True)
            submitted = await submitter.submit(Identity("acme", "ann", "00000000000a"), request)
            began, used = time.perf_counter(), _processor()
            while batch := queue.receive(BATCH):
                received = [Received(receipt, receipt, message.body) for receipt, message in batch]
                kept = await worker.run_batch(received, lambda: 90.0)
                for receipt, _ in batch:
                    if receipt not in kept:
                        queue.delete(receipt)
            seconds = time.perf_counter() - began
        state = await store.get_state(submitted.meta.job_id)
        if state is None or state.done != pages:
            raise AssertionError(f"not all were read: {state}")
    # The fork server has ended: what its children took is known.
    return Speed(seconds, _processor() - used, pages, state.bytes)


def _processor() -> float:
    return sum(os.times()[:4])


def run_sift(port: int, pages: int, children: int = 2) -> Speed:
    """One job in memory, worked on by one worker."""
    return asyncio.run(_run_sift(port, pages, MemoryStore(), MemoryBlobs(), children))


def run_on_moto(port: int, pages: int) -> Speed:
    """The same with table and bucket on a local cloud, which takes most of the time itself."""
    from benchmarks.steady_state import Deployment

    deployment = Deployment()
    try:
        return asyncio.run(_run_sift(port, pages, deployment.store, deployment.blobs, 2))
    finally:
        deployment.close()


def run_rival(name: str, port: int, pages: int) -> Speed:
    """Another, in its own environment."""
    program, *more = RIVALS[name]
    command = [str(OTHERS), str(ROOT / "benchmarks" / program), f"http://{LOOPBACK}:{port}", str(pages), *more]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env={"PATH": "/usr/bin:/bin"})
    found = json.loads(ran.stdout)
    speed = Speed(found["seconds"], found["processor"], int(found["pages"]), int(found["chars"]))
    if speed.pages != pages:
        raise AssertionError(f"{name}: {speed.pages} of {pages} pages\n{ran.stderr}")
    return speed


def best(speeds: Sequence[Speed]) -> Speed:
    """The fastest round of one that ran several times: what the machine did beside it slowed the others."""
    return max(speeds, key=lambda speed: speed.rate)


def main() -> None:
    """Run all, taking turns, and print them with the ratio to the faster of the two plain crawlers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--moto", action="store_true", help="once more on a local cloud, for information")
    arguments = parser.parse_args()
    if not OTHERS.exists():
        sys.exit("nothing to compare with: make .venv-throughput/.installed")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    speeds: dict[str, list[Speed]] = {"sift": [], **{name: [] for name in RIVALS}}
    with site(arguments.pages) as port:
        for _ in range(arguments.rounds):
            for name, runs in speeds.items():
                run = run_sift(port, arguments.pages) if name == "sift" else run_rival(name, port, arguments.pages)
                runs.append(run)
        moto = run_on_moto(port, min(arguments.pages, 500)) if arguments.moto else None
    found = {name: best(runs) for name, runs in speeds.items()}
    if moto is not None:
        found["sift on moto"] = moto
    print("| | targets/s | ms of the processor a target | characters a target |\n|---|---:|---:|---:|")
    for name, speed in found.items():
        print(f"| {name} | {speed.rate:.1f} | {1000 / speed.work:.1f} | {speed.chars / speed.pages:,.0f} |")
    plain = [name for name in RIVALS if name != POOL]
    fastest = max(plain, key=lambda name: found[name].rate)
    ratio = found["sift"].rate / found[fastest].rate
    print(f"\nsift over {fastest}: {ratio:.2f}; goal of {GOAL}: {'met' if ratio >= GOAL else 'MISSED'}")
    print(f"sift over {POOL}: {found['sift'].rate / found[POOL].rate:.2f}")
    cheapest = max(RIVALS, key=lambda name: found[name].work)
    print(f"for each second of the processor, over {cheapest}: {found['sift'].work / found[cheapest].work:.2f}")


if __name__ == "__main__":
    main()
