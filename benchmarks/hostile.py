"""What hostile documents cost: time, memory and outcome of each, through the whole pipeline."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.hostile_files import ARCHIVES, CODINGS, PDFS, PROGRAMS
from benchmarks.hostile_pages import PAGES
from benchmarks.loopback import LOOPBACK, Answer, open_pipeline, serve
from sift.content import frames
from sift.content.child import ForkServer
from sift.content.endings import Ending
from sift.content.pipeline import Pipeline, PipelineSettings
from sift.errors import TargetBusy, TargetFailed
from sift.targets import FetchOptions

#: Seconds that a case may take.
MOST_SECONDS = 10.0
_MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    """One document and how it is read; `engine` names the PDF reader that gets it, in place of both in turn."""

    group: str
    name: str
    content_type: str
    make: Callable[[], bytes]
    options: dict[str, Any] = field(default_factory=dict)
    coding: str = ""
    engine: str = ""


@dataclass(frozen=True)
class Found:
    """What came of a case: `content` or a target's error code.

    `child_bytes` is the child's peak, `worker_bytes` by how much the worker's own grew.
    """

    outcome: str
    seconds: float
    cpu_seconds: float
    child_bytes: int
    worker_bytes: int


def cases() -> Iterator[Case]:
    """All of them."""
    for name, content_type, make in PAGES:
        for mode in ("article", "page", "text") if "html" in content_type else ("auto",):
            yield Case("page", f"{name} ({mode})", content_type, make, {"mode": mode})
    for name, program in PROGRAMS:
        yield Case("jq", name, "application/json", lambda: b'{"a": [1, 2, 3]}', {"jq": program})
    for name, body in PDFS:
        yield Case("PDF", name, "application/pdf", body)
        yield Case("PDF", f"{name} (pypdf)", "application/pdf", body, engine="pypdf")
    for name, coding, body in CODINGS:
        yield Case("coding", name, "text/html", body, coding=coding)
    for name, content_type, body in ARCHIVES:
        yield Case("archive", name, content_type, body)


async def run(chosen: list[Case]) -> AsyncIterator[tuple[Case, Found]]:
    """Read each in turn, with a pipeline as it is deployed."""
    routes: dict[str, Answer] = {}
    async with serve(routes) as port, open_pipeline(port) as (pipeline, server):
        for case in chosen:
            headers = (f"Content-Encoding: {case.coding}",) if case.coding else ()
            routes["/case"] = Answer(case.make(), case.content_type, headers)
            server.last = None
            before = _forget_peak()
            started = time.perf_counter()
            outcome = await _outcome(case, pipeline, server, routes["/case"], f"http://{LOOPBACK}:{port}/case")
            seconds = time.perf_counter() - started
            await server.wait_ended()
            used = server.last or Ending(frames.REFUSED, 0)
            yield case, Found(outcome, seconds, used.cpu_ms / 1000, used.peak_kib * 1024, _peak() - before)


async def _outcome(case: Case, pipeline: Pipeline, server: ForkServer, answer: Answer, url: str) -> str:
    try:
        if case.engine:
            head = {"url": url, "content_type": case.content_type, "mode": "auto", "pages": None, "engine": case.engine}
            answered, _ = await server.run(head, answer.body, PipelineSettings().extract_s)
            return str(answered["error"]["code"]) if "error" in answered else "content"
        await pipeline.run(url, FetchOptions(**case.options), 40.0)
    except (TargetFailed, TargetBusy) as error:
        return error.code
    return "content"


def _forget_peak() -> int:
    """Begin to count this process's peak anew where the system can; the peak then, in bytes."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return _peak()


def _peak() -> int:
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def main(groups: list[str]) -> None:
    """Print a table, and what is over the limits; `groups` are kinds to run, all where there are none."""
    limit = PipelineSettings().child.memory_bytes
    print("| kind | document | outcome | s | CPU s | child MB | worker + MB |\n|---|---|---|---:|---:|---:|---:|")
    over = []
    async for case, found in run([case for case in cases() if not groups or case.group in groups]):
        times = f"{found.seconds:.2f} | {found.cpu_seconds:.2f}"
        used = f"{times} | {found.child_bytes // _MIB} | {found.worker_bytes // _MIB}"
        print(f"| {case.group} | {case.name} | {found.outcome} | {used} |", flush=True)
        if found.seconds > MOST_SECONDS or found.child_bytes > limit:
            over.append(case.name)
    print(f"\nOver {MOST_SECONDS:.0f} s or {limit // _MIB} MB: {', '.join(over) or 'none'}.")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
