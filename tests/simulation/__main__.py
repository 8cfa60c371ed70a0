"""Runs seeds: `python -m tests.simulation --seeds N [--start S] [--aws] [--jobs J]`."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator

import sift
from tests.simulation.runs import run_seed
from tests.simulation.world import Failure


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--start", type=int, default=0, help="the first one (default: %(default)s)")
    parser.add_argument("--aws", action="store_true", help="on the AWS adapters, over moto")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=200, help="of the trace, from its end (default: %(default)s)")
    parser.add_argument("--keep-going", action="store_true", help="after a failure")
    given = parser.parse_args(arguments)
    seeds = range(given.start, given.start + given.seeds)
    print(f"simulating {sift.__file__}", flush=True)
    began, passed, failed = time.monotonic(), 0, 0
    for failure in _run(seeds, given.aws, given.jobs):
        if failure is None:
            passed += 1
            continue
        failed += 1
        trace = failure.trace.splitlines()
        print("\n".join(trace[-given.lines :]) if given.lines else "", flush=True)
        print(f"seed {failure.seed}: {failure.invariant}: {failure.detail}", flush=True)
        if not given.keep_going:
            break
    print(f"{passed} seeds passed, {failed} failed, in {time.monotonic() - began:.1f} s")
    return 1 if failed else 0


def _run(seeds: range, aws: bool, jobs: int) -> Iterator[Failure | None]:
    if jobs == 1:
        for seed in seeds:
            yield run_seed(seed, aws=aws)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap_unordered(_run_aws if aws else run_seed, seeds, chunksize=20)


def _run_aws(seed: int) -> Failure | None:
    return run_seed(seed, aws=True)


if __name__ == "__main__":
    sys.exit(main())
