"""What the services measure while jobs live."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from sift import metrics
from sift.errors import CallerBusy, TargetBusy, TargetFailed
from sift.identity import Limits
from sift.metrics import Metric
from sift.specs import Spec
from sift.store.ports import Outcome
from sift.targets import Content
from tests.unit.services.world import ANN, NOW, World, urls


class Ledger:
    """All measurements by metric and label."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str | None], list[float]] = {}

    def __call__(self, metric: Metric, value: float, label: str | None) -> None:
        assert metric in metrics.ALL
        assert (metric.label is None) == (label is None) or label is None
        self.values.setdefault((metric.name, label), []).append(value)

    def sums(self) -> Counter[tuple[str, str | None]]:
        return Counter({key: int(sum(values)) for key, values in self.values.items()})


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    ledger = Ledger()
    metrics.send_to(ledger)
    yield ledger
    metrics.send_to(None)


def test_a_course_of_jobs(ledger: Ledger) -> None:
    async def story() -> None:
        world = World(limits=Limits(targets_per_job=9, jobs_per_caller=1, retained_jobs=9, job_bytes=10**6))
        good, bad, busy = urls(3)
        world.site.answers = {
            good: [Content(b"x" * 700, "text/plain")],
            bad: [TargetFailed("http_error", "404", status=404)],
            busy: [TargetBusy("429"), Content(b"y", "text/plain")],
        }
        targets = [Spec(url) for url in (good, bad, busy)]
        job = await world.submit(targets=targets)
        await world.submit(targets=targets)
        with pytest.raises(CallerBusy):
            await world.submit(1)
        await world.deliver()
        world.clock.now += 3_000
        await world.deliver()
        assert world.state(job).status == "partial"
        cancelled = await world.submit(1, fresh=True)
        await world.controller.cancel(ANN, cancelled.meta.job_id)

    asyncio.run(story())
    sums = ledger.sums()
    assert sums == {
        ("JobsCreated", None): 2, ("JobsReused", None): 1, ("JobsRefused", "caller_busy"): 1,
        ("JobsEnded", "partial"): 1, ("JobsEnded", "cancelled"): 1, ("JobTime", None): 3,
        ("TargetsEnded", "done"): 2, ("TargetsEnded", "failed"): 1, ("TargetErrors", "http_error"): 1,
        ("TargetTime", None): 0, ("ResultBytes", None): 701, ("BusyRetries", None): 1,
    }  # fmt: skip
    assert len(ledger.values["TargetTime", None]) == 4


def test_a_sweep(ledger: Ledger) -> None:
    async def story() -> None:
        world = World()
        job = await world.submit(3)
        world.queue.waiting.clear()
        await world.store.claim(job.meta.job_id, 0, NOW + 3_600_000, NOW)
        world.clock.now += 5 * 60_000
        assert (await world.sweep()).resent == 2

    asyncio.run(story())
    assert ledger.values["LiveJobs", None] == [1]
    assert ledger.values["TargetsRunning", None] == [1]
    assert (ledger.values["Repairs", "resent"], ledger.values["Repairs", "ended"]) == ([2], [0])


def test_a_code_that_a_child_made_up_is_no_dimension(ledger: Ledger) -> None:
    from sift.services.work import _tell

    _tell(Outcome(0, 1, "failed", 0, {"error": {"code": "made_up_7f3a"}}))
    assert ledger.values["TargetErrors", None] == [1]


def test_nobody_needs_to_listen() -> None:
    metrics.send_to(None)
    metrics.add(metrics.JOBS_CREATED)
