"""What must hold of results files, as told from the bucket alone."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

from sift.assembly import Assembly
from tests.simulation.invariants import broken

if TYPE_CHECKING:
    from tests.simulation.world import World


class Files:
    """Looks at a file when its assembly says that it is done, and sees to it that it stays so."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._done: dict[str, Assembly] = {}

    def step(self) -> None:
        """After each change of the table."""
        view = self._world.backend.view()
        for job_id, assembly in view.assemblies.items():
            seen = self._done.get(job_id)
            if seen is not None and assembly != seen and job_id in view.states:
                broken("results file", f"the file of {job_id} was done: {seen} -> {assembly}")
            if assembly.done and seen is None:
                self._done[job_id] = assembly
                if not self._world.checker.ledger.jobs[job_id].deleting:
                    self._read(assembly)

    def _read(self, assembly: Assembly) -> None:
        job_id, view = assembly.job_id, self._world.backend.view()
        body = self._world.backend.blob(assembly.key)
        if body is None:
            broken("results file", f"{job_id} says that {assembly.key} is there")
        lines = [json.loads(line) for line in gzip.decompress(body).splitlines()]
        state, urls = view.states[job_id], self._world.checker.ledger.jobs[job_id].urls
        if [(line["index"], line.get("url") or line.get("path")) for line in lines] != list(enumerate(urls)):
            broken("results file", f"the file of {job_id} holds {[line['index'] for line in lines]} of {len(urls)}")
        for index, line in enumerate(lines):
            outcome = view.outcomes.get((job_id, index))
            counted = index < state.released and index not in state.flight
            if counted and line["status"] not in {"done", "failed"}:
                # Only a worker that outlived its lease can have counted it since the file was begun.
                if index not in assembly.flight:
                    broken("results file", f"{index} of {job_id} has ended as {outcome}, the file says {line}")
            elif counted and outcome is not None:
                content = self._world.backend.blob(outcome.blob) if outcome.blob else outcome.content
                if line["status"] != outcome.status or _content(line) != (content or b""):
                    broken("results file", f"{index} of {job_id} has ended as {outcome}, the file says {line}")
            elif line["status"] != ("cancelled" if state.status == "cancelled" else "failed"):
                broken("results file", f"{index} of {job_id} has not ended, the file says {line}")

    async def at_the_end(self) -> None:
        """Whoever asks for the file of a job that is kept gets it, if need be after asking again for a while."""
        world = self._world
        for job_id, state in list(world.backend.view().states.items()):
            for _ in range(60):
                kept = world.backend.view().states.get(job_id)
                gone = kept is None or kept.expired(world.now_ms()) or world.checker.ledger.jobs[job_id].deleting
                if gone or world.backend.view().assemblies.get(job_id, _NONE).done:
                    break
                await world.ask_for_file(job_id)
                await world.pause(60)
            else:
                broken("results file", f"{job_id} has none: {state}")


def _content(line: dict[str, Any]) -> bytes:
    content: str = line.get("content", "")
    return base64.b64decode(content) if line.get("encoding") else content.encode()


_NONE = Assembly("", "", {}, 0, None)
