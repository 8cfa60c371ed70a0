"""The web as the simulated workers see it: what each target does is in its URL."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sift.errors import TargetBusy, TargetFailed
from sift.targets import Content
from tests.simulation.processes import HOLDING, Invocation, Process

if TYPE_CHECKING:
    from tests.simulation.world import World

Target = tuple[str, int]

GOOD = ("ok", "ok", "ok", "ok", "ok", "slow", "large")
ALWAYS = 99
#: The result of a visit whose turn could not be held.
GIVEN_UP = "GivenUp"
#: The number is how often it happens before the target is fine.
BAD = (
    "fail",
    "busy1",
    "busy3",
    "busy99",
    "later1",
    "later99",
    "crash1",
    "crash3",
    "crash99",
    "hang",
    "stuck1",
    "bug",
    "fat",
)
NOISE = random.Random(1).randbytes(40_000)


@dataclass
class Visit:
    """One fetch of a target. `result`: None while under way, or ever after if its process did not live to see it."""

    serial: int
    lease: int
    invocation: Invocation
    began: float
    ended: float | None = None
    result: str | None = None
    size: int = 0


def make_url(rng: random.Random, number: int, kinds: tuple[str, ...], trouble: float) -> str:
    if kinds:
        return f"https://site.example/{rng.choice(kinds)}/{number}"
    kind = rng.choice(BAD) if rng.random() < trouble else rng.choice(GOOD)
    return f"https://site.example/{kind}/{number}"


def kind_of(url: str) -> tuple[str, int]:
    """What a target does, and how often before it is fine."""
    word = url.split("/")[3]
    name = word.rstrip("0123456789")
    return name, int(word[len(name) :] or 0)


class Site:
    """Keeps the visits of each target."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.visits: dict[Target, list[Visit]] = {}
        self._serial = 0
        self._under_way: dict[int, Visit] = {}
        #: When each visit began, and how many were under way then, this one included.
        self.begun: list[tuple[float, int]] = []

    def fetch_for(self, process: Process) -> Callable[[str, Mapping[str, Any], float], Awaitable[Content]]:
        async def fetch(url: str, options: Mapping[str, Any], deadline_s: float, *, gone: Any = None) -> Content:
            return await self._fetch(process, url, deadline_s)

        return fetch

    async def _fetch(self, process: Process, url: str, deadline_s: float) -> Content:
        job_id, index, lease = HOLDING.get()
        world, rng = self._world, self._world.rng
        self._serial += 1
        earlier = self.visits.setdefault((job_id, index), [])
        visit = Visit(self._serial, lease, process.invocation, world.loop.time())
        world.checker.fetching((job_id, index), url, visit, earlier)
        earlier.append(visit)
        self._under_way[visit.serial] = visit
        kind, times = kind_of(url)
        taken = {"slow": rng.uniform(15, 39), "hang": deadline_s, "stuck": 1_000.0}.get(kind, rng.expovariate(1))
        again = times == ALWAYS or len(earlier) <= times
        if kind == "stuck" and not again:
            taken = 1.0
        alive = [one for one in self._under_way.values() if one.ended is None and one.invocation.owns]
        self.begun.append((visit.began, len(alive)))
        try:
            await process.sleep(min(taken, deadline_s) if kind != "stuck" else taken)
        except asyncio.CancelledError:
            # Its turn could not be held: others may go, so it is over, and counts as busy.
            visit.ended, visit.result = world.loop.time(), GIVEN_UP
            self._under_way.pop(visit.serial, None)
            raise
        if kind == "crash" and again:
            process.kill(f"fetching {index} of {job_id}")
            await process.sleep(0)
        visit.ended = world.loop.time()
        self._under_way.pop(visit.serial, None)
        try:
            content = self._answer(kind, again, url, visit)
        except BaseException as error:
            visit.result = type(error).__name__
            raise
        finally:
            world.note(process.name, f"fetched {index} of {job_id}: {kind} {visit.result or 'content'}")
        visit.result, visit.size = "Content", len(content.body)
        return content

    def _answer(self, kind: str, again: bool, url: str, visit: Visit) -> Content:
        match kind:
            case "fail":
                raise TargetFailed("http_error", "It answered 404.", status=404)
            case "hang":
                raise TargetFailed("timeout", "It did not answer in time.")
            case "busy" if again:
                raise TargetBusy("It answered 429.", status=429)
            case "later" if again:
                wait = self._world.rng.choice([5.0, 40.0, 200.0, 900.0])
                raise TargetBusy("It answered 503.", status=503, retry_after=wait)
            case "bug":
                raise ZeroDivisionError("a fault of the pipeline")
        body = f"{url}#{visit.serial}".encode()
        if kind in {"large", "fat"}:
            body += NOISE
        return Content(body, "text/plain", {"chars": len(body)})
