"""What a worker and all its children hold in memory together while it reads ten pages of 5 MB at once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.loopback import LOOPBACK, Answer, open_pipeline, serve
from sift.content.sandbox import ChildLimits
from sift.errors import TargetFailed
from sift.targets import FetchOptions

PAGES = 10
PAGE_BYTES = 5_000_000
#: Megabytes for all processes together.
GOAL_MB = 600
_MIB = 1 << 20
_SENTENCES = (
    "The harbour authority published a long statement on the state of the northern pier this morning. ",
    "Ferries of three lines were held at sea for a day, and their passengers with them, until the wind turned. ",
    "What the repairs will cost, nobody at the town hall wanted to say; the council is to hear of it in May. ",
)


@dataclass
class Peak:
    """The most megabytes that were seen: of all together, and of each process at that moment by what it is."""

    total: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)
    samples: int = 0

    def add(self, parts: dict[str, float]) -> None:
        """Take in one look at all processes."""
        self.samples += 1
        if (total := sum(parts.values())) > self.total:
            self.total, self.parts = total, parts


def page(number: int, size: int = PAGE_BYTES) -> bytes:
    """An article of about `size` bytes."""
    head = (
        f"<!doctype html><html lang=en><head><title>Page {number}</title></head><body><article><h1>Page {number}</h1>"
    )
    parts, length, count = [head], len(head), 0
    while length < size - 500:
        text = "".join(f"{_SENTENCES[(count + n) % 3]}{count * 7 + n} " for n in range(4))
        parts.append(f"<p>{text}<a href=/p/{count}>more</a></p>")
        length += len(parts[-1])
        count += 1
    return "".join([*parts, "</article></body></html>"]).encode()


async def work(port: int, pages: int) -> None:
    """The worker: all pages at once, as a batch of the queue is. Prints what became of them."""
    limits = ChildLimits(cpu_s=100)
    async with open_pipeline(port, child=limits, extract_s=200.0) as (pipeline, _):

        async def read(number: int) -> str:
            try:
                content = await pipeline.run(f"http://{LOOPBACK}:{port}/{number}", FetchOptions(), 800.0)
            except TargetFailed as error:
                return error.code
            return "content" if len(content.body) > PAGE_BYTES // 2 else "too little"

        outcomes = await asyncio.gather(*(read(number) for number in range(pages)))
    print({outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))})


async def measure(pages: int = PAGES, size: int = PAGE_BYTES) -> tuple[str, Peak]:
    """Run a worker and watch it; what it printed, and the peak."""
    routes = {f"/{number}": Answer(page(number, size), "text/html; charset=utf-8") for number in range(pages)}
    peak = Peak()
    async with serve(routes) as port:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.memory", str(port), str(pages), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        said = asyncio.create_task(process.stdout.read())
        while not said.done():
            peak.add(dict(_look(process.pid)))
            await asyncio.sleep(0.02)
        await process.wait()
    return (await said).decode().strip(), peak


def _look(worker: int) -> Iterator[tuple[str, float]]:
    """Megabytes of the worker, its server, and each child."""
    yield "worker", _megabytes(worker)
    for server in _children(worker):
        yield "fork server", _megabytes(server)
        for number, child in enumerate(_children(server), 1):
            yield f"child {number}", _megabytes(child)


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []


def _megabytes(pid: int) -> float:
    """PSS, which counts shared memory once; RSS, which counts it for each, where that may not be read."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    except (OSError, StopIteration):
        pass
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * 4096 / _MIB
    except OSError:
        return 0.0


def main() -> None:
    """Print the peak by process, against the goal."""
    said, peak = asyncio.run(measure())
    print(f"{PAGES} pages of {PAGE_BYTES} bytes: {said}\n\n| process | MB |\n|---|---:|")
    for name, megabytes in peak.parts.items():
        print(f"| {name} | {megabytes:.0f} |")
    print(f"| together | {peak.total:.0f} |\n\nGoal: under {GOAL_MB} MB. {peak.samples} looks.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(int(sys.argv[1]), int(sys.argv[2])))
    else:
        main()
