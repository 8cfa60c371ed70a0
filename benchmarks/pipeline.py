"""What the whole way of a page costs, from its address to its content, beside trafilatura alone in the same run."""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.extraction_sets import Sample, find_samples
from benchmarks.loopback import LOOPBACK, Answer, open_pipeline, serve
from sift.content.charset import decode
from sift.content.pipeline import Pipeline
from sift.errors import TargetFailed
from sift.targets import FetchOptions

WARM = 3
DEADLINE_S = 60.0


async def measure(samples: Sequence[Sample], repeat: int) -> dict[str, list[float]]:
    """Milliseconds of wall time by way and page: the least of `repeat` runs, the ways taking turns at each page."""
    times: dict[str, list[float]] = {"pipeline": [], "trafilatura": [], "trafilatura with metadata": []}
    routes = {f"/{index}": Answer(sample.read(), "text/html") for index, sample in enumerate(samples)}
    async with serve(routes) as port, open_pipeline(port) as (pipeline, _):
        for path in list(routes)[:WARM]:
            await _fetch(pipeline, port, path)
            _extract(routes[path].body, metadata=True)
        for path, answer in routes.items():
            rounds: dict[str, list[float]] = {name: [] for name in times}
            for _ in range(repeat):
                rounds["pipeline"].append(await _fetch(pipeline, port, path))
                rounds["trafilatura"].append(_extract(answer.body, metadata=False))
                rounds["trafilatura with metadata"].append(_extract(answer.body, metadata=True))
            for name, values in rounds.items():
                times[name].append(min(values))
    return times


async def _fetch(pipeline: Pipeline, port: int, path: str) -> float:
    """Guard, fetch, child process, article with its structure, metadata."""
    started = time.perf_counter()
    try:
        await pipeline.run(f"http://{LOOPBACK}:{port}{path}", FetchOptions(mode="article"), DEADLINE_S)
    except TargetFailed as error:
        if error.code != "empty":
            raise
    return (time.perf_counter() - started) * 1000


def _extract(body: bytes, *, metadata: bool) -> float:
    """trafilatura in this process, on bytes that are there already."""
    import trafilatura

    started = time.perf_counter()
    trafilatura.extract(decode(body)[0], output_format="markdown", include_links=True, with_metadata=metadata)
    return (time.perf_counter() - started) * 1000


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
    times = asyncio.run(measure(samples, options.repeat))
    whole = statistics.median(times["pipeline"])
    print(f"{len(samples)} pages{'median ms':>28}{'p95 ms':>12}{'pipeline / it':>16}")
    for name, values in times.items():
        median, p95 = statistics.median(values), sorted(values)[int(len(values) * 0.95)]
        print(f"{name:<27}{median:>10.1f}{p95:>12.1f}{whole / median:>16.2f}")


if __name__ == "__main__":
    main()
