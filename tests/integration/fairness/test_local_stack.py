"""The same fairness on the local stack, with a large job of a few hundred targets."""

from __future__ import annotations

from pathlib import Path

from benchmarks.fairness import BATCH, SMALL, SMALLS, WORKERS
from benchmarks.fairness_local import measure
from sift.jobs import MAX_WINDOW

LARGE = 450


def test_small_jobs_on_the_local_stack(tmp_path: Path) -> None:
    """`python -m benchmarks.fairness --local 9000` takes the full size."""
    waits = measure(LARGE, SMALLS, SMALL, tmp_path)
    assert len(waits) == SMALLS
    for wait in waits:
        # Within a batch the order of the fetches is open: the rest of it may be asked for first.
        assert wait.ahead <= MAX_WINDOW + BATCH - SMALL, waits
        assert wait.meanwhile <= SMALL + MAX_WINDOW + WORKERS * BATCH, waits
    assert sum(wait.large_left > 2 * MAX_WINDOW for wait in waits) >= SMALLS - 2, "they overtook most of the large job"
    print(waits)
