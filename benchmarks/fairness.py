"""How long small jobs wait behind a large one, counted in targets, on the real services in virtual time."""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.fairness_local import measure, scratch
from benchmarks.fairness_plot import draw
from sift.blobs.memory import MemoryBlobs
from sift.events.memory import MemoryBus
from sift.identity import Identity, Limits
from sift.jobs import ENDED, MAX_WINDOW
from sift.queue.memory import MemoryQueue
from sift.queue.ports import Received
from sift.services.advance import Advancer
from sift.services.fetching import FetchRunner
from sift.services.submit import Request, Submitter
from sift.services.terms import Terms
from sift.services.work import Worker
from sift.specs import Spec
from sift.store.memory import MemoryStore
from sift.store.ports import Changed
from sift.targets import Content
from tests.simulation.loop import VirtualLoop

PLOT = Path(__file__).parents[1] / "docs" / "fairness.svg"
LARGE, SMALL, SMALLS = 9_000, 5, 7
BATCH, WORKERS = 10, 2
#: Of every job; no caller can ask for more than MAX_WINDOW.
WINDOW = MAX_WINDOW
START_MS = 1_796_000_000_000
#: A worker that found nothing looks again after so many seconds.
POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Scene:
    """What is run. `submit_at`: for each small job, after how many finished targets of the large one it comes.
    A fetch takes one second, give or take `spread` of it."""

    large: int = LARGE
    submit_at: tuple[int, ...] = (0,) * SMALLS
    workers: int = WORKERS
    spread: float = 0.0
    seed: int = 0

    @property
    def sizes(self) -> list[int]:
        return [self.large, *[SMALL] * len(self.submit_at)]


@dataclass
class Course:
    """What happened. `finished` and `begun` are the job (0: the large one) of each target in the order of their ends
    and of their claims; `submitted`, `begun_all` and `ended` say for each job how many targets of all jobs had
    finished, begun and finished by then."""

    scene: Scene
    finished: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    submitted: dict[int, int] = field(default_factory=dict)
    begun_all: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)

    @property
    def smalls(self) -> range:
        return range(1, len(self.scene.sizes))

    def ahead(self) -> list[int]:
        """For each small job: targets of the large one that were under way when it came, or were begun before its
        last one was. This is what it had to wait for."""
        return [
            self.begun[: self.begun_all[job]].count(0) - self.finished[: self.submitted[job]].count(0)
            for job in self.smalls
        ]

    def meanwhile(self) -> list[int]:
        """For each small job: targets of the large one that finished between its submission and its end. Among them
        are some that other workers began after its last one and finished first."""
        return [self.finished[self.submitted[job] : self.ended[job]].count(0) for job in self.smalls]


class _Clock:
    """The time of the loop."""

    def now_ms(self) -> int:
        return START_MS + round(asyncio.get_running_loop().time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _WatchedStore(MemoryStore):
    """Tells a course of each target and job that ends."""

    def __init__(self, course: Course) -> None:
        super().__init__()
        self.jobs: dict[str, int] = {}
        self._course = course

    async def claim(self, job_id: str, index: int, lease: int, now_ms: int) -> Changed:
        changed = await super().claim(job_id, index, lease, now_ms)
        if changed.ok:
            job = self.jobs[job_id]
            self._course.begun.append(job)
            self._course.begun_all[job] = len(self._course.begun)
        return changed

    async def finish(
        self, job_id: str, index: int, lease: int, status: Literal["done", "failed"], size: int
    ) -> Changed:
        changed = await super().finish(job_id, index, lease, status, size)
        if changed.ok:
            self._course.finished.append(self.jobs[job_id])
        return changed

    async def settle(self, meta: Any, *arguments: Any) -> Changed:
        changed = await super().settle(meta, *arguments)
        if changed.ok:
            self._course.ended[self.jobs[meta.job_id]] = len(self._course.finished)
        return changed


async def _play(course: Course) -> None:
    scene = course.scene
    random_ = random.Random(scene.seed)
    clock, store, blobs = _Clock(), _WatchedStore(course), MemoryBlobs()
    # Strict order of arrival: less fair than SQS, which looks at the groups of waiting messages.
    queue = MemoryQueue(clock)
    advancer = Advancer(store, queue, blobs, MemoryBus(), clock, assembly=MemoryQueue(clock))
    limits = Limits(targets_per_job=LARGE, jobs_per_caller=1, retained_jobs=1, job_bytes=2**30, window=WINDOW)
    submitter = Submitter(store, queue, blobs, clock, Terms(1 + SMALLS, limits, 86_400))

    async def fetch(url: str, options: Mapping[str, Any], deadline_s: float, *, gone: Any = None) -> Content:
        # No two in the same moment: of those that begin together, the first to begin is the first to end.
        await asyncio.sleep(1 + scene.spread * random_.uniform(-1, 1) + len(course.begun) * 1e-6)
        return Content(b"A page.", "text/plain; charset=utf-8")

    async def submit(job: int) -> None:
        targets = [Spec(f"https://example.com/{job}/{number}") for number in range(scene.sizes[job])]
        course.submitted[job] = len(course.finished)
        caller = Identity("acme", f"caller-{job}", "00000000000a")
        submitted = await submitter.submit(caller, Request(targets=targets, window=WINDOW))
        store.jobs[submitted.meta.job_id] = job

    async def work() -> None:
        worker = Worker(
            store=store, queue=queue, dead_letters=queue, clock=clock, advancer=advancer,
            runner=FetchRunner(fetch, blobs, clock), lease_seconds=100, random_source=random_,
        )  # fmt: skip
        while len(course.ended) < len(scene.sizes):
            batch = queue.receive(BATCH)
            if not batch:
                await asyncio.sleep(POLL_SECONDS)
                continue
            received = [Received(receipt, receipt, message.body, message.receives) for receipt, message in batch]
            kept = await worker.run_batch(received, lambda: 90.0)
            for receipt in {one.receipt for one in received} - set(kept):
                queue.delete(receipt)

    async def come() -> None:
        for job, moment in enumerate(scene.submit_at, start=1):
            while course.finished.count(0) < moment:
                await asyncio.sleep(POLL_SECONDS)
            await submit(job)

    await submit(0)
    await asyncio.gather(come(), *(work() for _ in range(scene.workers)))
    if any(state.status not in ENDED for state in store.states.values()) or store.live[0]:
        raise AssertionError("a job has not ended")
    if [course.finished.count(job) for job in range(len(scene.sizes))] != scene.sizes:
        raise AssertionError("a target has not ended once")


def run(scene: Scene) -> Course:
    """The course of a scene; the same scene always takes the same one."""
    course = Course(scene)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(_play(course))
    return course


def spread_out(large: int, seed: int) -> tuple[int, ...]:
    """Seven moments in the course of a large job, in order."""
    return tuple(sorted(random.Random(seed).sample(range(large), SMALLS)))


def report(name: str, courses: Sequence[Course]) -> None:
    """One line of the table."""
    ahead = [count for course in courses for count in course.ahead()]
    meanwhile = [count for course in courses for count in course.meanwhile()]
    columns = [fold(counts) for counts in (ahead, meanwhile) for fold in (min, statistics.mean, max)]
    print(f"  {name:<46}" + "".join(f"{column:>7.0f}" for column in columns))


def report_local(large: int) -> None:
    """What each small job met on a local stack."""
    with scratch() as folder:
        waits = measure(large, SMALLS, SMALL, folder)
    print(f"Local stack, {SMALLS} jobs of {SMALL} over the course of one of {large:,}: targets of the large one that")
    print("each waited for, that finished meanwhile, and that were left when it ended")
    for wait in waits:
        print(f"  {wait.ahead:>6}{wait.meanwhile:>6}{wait.large_left:>8,}")


def main() -> None:
    """Print the waits and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", type=int, default=LARGE, help="targets of the large job")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plot", type=Path, default=PLOT)
    parser.add_argument("--local", type=int, metavar="LARGE", help="on a local stack instead: real time, no plot")
    chosen = parser.parse_args()
    if chosen.local:
        report_local(chosen.local)
        return
    large, seeds = chosen.large, range(chosen.seeds)
    print(
        f"Seven jobs of {SMALL} and one of {large:,}; {WORKERS} workers of {BATCH}, strict order of arrival. Targets of"
    )
    print(
        f"the large one that each waited for, and that finished meanwhile (window: {MAX_WINDOW}), least, mean and most:"
    )
    together = run(Scene(large))
    apart = [run(Scene(large, spread_out(large, seed), seed=seed)) for seed in seeds]
    report("at once, right after it", [together])
    report("over its course", apart)
    for spread in (0.5, 0.9):
        scenes = [Scene(large, spread_out(large, seed), spread=spread, seed=seed) for seed in seeds]
        report(f"the same, fetches take {1 - spread:.1f} to {1 + spread:.1f} s", [run(scene) for scene in scenes])
    chosen.plot.write_text(draw(together, apart[0]), encoding="utf-8")


if __name__ == "__main__":
    main()
