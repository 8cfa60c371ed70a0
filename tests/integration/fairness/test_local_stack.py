"""The same fairness on the local stack, with a large job of a few hundred targets."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks.fairness import BATCH, SMALL, SMALLS, WORKERS
from benchmarks.fairness_local import measure
from sift.jobs import MAX_WINDOW

LARGE = 300


def test_small_jobs_on_the_local_stack(tmp_path: Path) -> None:
    """`python -m benchmarks.fairness --local 9000` takes the full size."""
    waits = measure(LARGE, SMALLS, SMALL, tmp_path)
    assert len(waits) == SMALLS
    # In real time a process that stands still lets the others run on: the middle of the waits says how it is as a rule,
    # and the bound of each one is held in virtual time (test_waits.py).
    # Within a batch the order of the fetches is open: the rest of it may be asked for first.
    assert median(wait.ahead for wait in waits) <= MAX_WINDOW + BATCH - SMALL, waits
    assert median(wait.meanwhile for wait in waits) <= SMALL + MAX_WINDOW + WORKERS * BATCH, waits
    assert median(wait.large_left for wait in waits) > 2 * MAX_WINDOW, "they overtook most of the large job"
    print(waits)
