"""Jobs that have ended, their results files, and what has to stand in them."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

from sift.services.submit import Submitted
from sift.specs import Spec
from tests.unit.services.world import ANN, World


def noise(count: int, each: int = 3_000) -> list[str]:
    """URLs that do not compress, so that a file of a few of them has several parts."""
    chance = random.Random(count)
    return [f"https://example.com/{chance.randbytes(each).hex()}" for _ in range(count)]


async def ended(world: World, count: int = 3) -> Submitted:
    """A job of so many targets that was worked on, and whose file is to be written."""
    job = await world.submit(targets=[Spec(url) for url in noise(count)])
    await world.drain()
    assert world.state(job).status in {"done", "partial"}
    return job


async def write_part(world: World, job: Submitted) -> None:
    """One part of the file; for another there is no time, so that it is left to a new message."""
    left = iter([120.0])
    assert await world.assembler.assemble(job.meta.job_id, lambda: next(left, 10.0)) is None


async def lines(world: World, job: Submitted) -> list[dict[str, Any]]:
    """What stands in its file."""
    found = await world.results.find(ANN, job.meta.job_id)
    assert found.key is not None
    body, media_type = world.blobs.blobs[found.key]
    assert media_type == "application/gzip"
    return [json.loads(line) for line in gzip.decompress(body).splitlines()]


def check(found: list[dict[str, Any]], world: World, job: Submitted) -> None:
    """A line for each target, in order, with the content of its outcome."""
    total = world.state(job).total
    assert [slot["index"] for slot in found] == list(range(total))
    for slot in found:
        outcome = world.store.outcomes[job.meta.job_id, slot["index"]]
        assert slot["status"] == outcome.status
        assert slot.get("content", "").encode() == (outcome.content or b"")
