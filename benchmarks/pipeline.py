"""What the whole way of a page costs, from its address to its content, beside trafilatura alone in the same run."""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from benchmarks.extraction_sets import Sample, find_samples
from benchmarks.loopback import LOOPBACK, Answer, open_pipeline, serve
from sift.content.charset import decode
from sift.content.child import ForkServer
from sift.content.pipeline import Pipeline
from sift.errors import TargetFailed
from sift.targets import FetchOptions

WARM = 3
DEADLINE_S = 60.0


@dataclass(frozen=True)
class Cost:
    """Milliseconds by the clock, and of the processor in all processes."""

    wall: float
    cpu: float


async def measure(samples: Sequence[Sample], repeat: int) -> dict[str, list[Cost]]:
    """Costs by way and page: the least of `repeat` runs, the ways taking turns at each page."""
    costs: dict[str, list[Cost]] = {"pipeline": [], "trafilatura": [], "trafilatura with metadata": []}
    routes = {f"/{index}": Answer(sample.read(), "text/html") for index, sample in enumerate(samples)}
    async with serve(routes) as port, open_pipeline(port) as (pipeline, server):
        for path in list(routes)[:WARM]:
            await _fetch(pipeline, server, port, path)
            _extract(routes[path].body, metadata=True)
        for path, answer in routes.items():
            rounds: dict[str, list[Cost]] = {name: [] for name in costs}
            for _ in range(repeat):
                rounds["pipeline"].append(await _fetch(pipeline, server, port, path))
                rounds["trafilatura"].append(_extract(answer.body, metadata=False))
                rounds["trafilatura with metadata"].append(_extract(answer.body, metadata=True))
            for name, values in rounds.items():
                costs[name].append(Cost(min(cost.wall for cost in values), min(cost.cpu for cost in values)))
    return costs


async def _fetch(pipeline: Pipeline, server: ForkServer, port: int, path: str) -> Cost:
    """Guard, fetch, child process, article with its structure, metadata; the server on loopback counts too."""
    of_server, of_this = _read_cpu(server.pid), time.process_time()
    started = time.perf_counter()
    try:
        await pipeline.run(f"http://{LOOPBACK}:{port}{path}", FetchOptions(mode="article"), DEADLINE_S)
    except TargetFailed as error:
        if error.code != "empty":
            raise
    wall = (time.perf_counter() - started) * 1000
    await server.wait_ended()
    of_child = server.last.cpu_ms if server.last else 0
    return Cost(wall, (time.process_time() - of_this) * 1000 + _read_cpu(server.pid) - of_server + of_child)


def _read_cpu(pid: int | None) -> float:
    """Milliseconds of the processor that a process took, without its children (Linux; elsewhere 0)."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) / 1e6
    except OSError:
        return 0.0


def _extract(body: bytes, *, metadata: bool) -> Cost:
    """trafilatura in this process, on bytes that are there already."""
    import trafilatura

    started, cpu = time.perf_counter(), time.process_time()
    trafilatura.extract(decode(body)[0], output_format="markdown", include_links=True, with_metadata=metadata)
    return Cost((time.perf_counter() - started) * 1000, (time.process_time() - cpu) * 1000)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it and print medians, 95th percentiles and what the pipeline's median is of trafilatura's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of pages, as benchmarks.extraction takes it")
    parser.add_argument("--every", type=int, default=5, metavar="N", help="only every Nth page")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each page; the fastest counts")
    options = parser.parse_args(arguments)
    samples = find_samples(options.data)[0][:: options.every]
    if not samples:
        sys.exit(f"no pages found below {options.data}")
    logging.disable(logging.CRITICAL)
    costs = asyncio.run(measure(samples, options.repeat))
    for what, read in (("by the clock", attrgetter("wall")), ("of the processor", attrgetter("cpu"))):
        times = {name: sorted(map(read, values)) for name, values in costs.items()}
        whole = statistics.median(times["pipeline"])
        print(f"{len(samples)} pages, ms {what:<16}{'median':>8}{'p95':>12}{'pipeline / it':>16}")
        for name, values in times.items():
            median = statistics.median(values)
            print(f"{name:<27}{median:>10.1f}{values[int(len(values) * 0.95)]:>12.1f}{whole / median:>16.2f}")


if __name__ == "__main__":
    main()
