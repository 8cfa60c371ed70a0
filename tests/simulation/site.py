"""The web and the gateway as the simulated workers see them: what each target does is in its URL, or its path."""

from __future__ import annotations

import io
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sift.errors import TargetBusy, TargetCut, TargetFailed
from sift.model_requests import UpstreamRequest, UpstreamResponse
from sift.targets import Content
from tests.simulation.invariants import broken
from tests.simulation.processes import HOLDING, Invocation, Process

if TYPE_CHECKING:
    from tests.simulation.world import World

Target = tuple[str, int]

GOOD = ("ok", "ok", "ok", "ok", "ok", "slow", "large")
ALWAYS = 99
#: The result of a visit whose turn could not be held: it counts as busy.
GIVEN_UP = "CancelledError"
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
#: Of requests only: an answer that is cut off, and one with an error that has a body.
BAD_REQUESTS = (*BAD, "cut1", "cut3", "cut99", "error")
#: What one request may take, in seconds; a request begun later than its batch has less.
REQUEST_SECONDS = 60.0
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
    fitting = [kind for kind in kinds if not kind.startswith(("cut", "error"))]
    return f"https://site.example/{_draw(rng, fitting, BAD, trouble)}/{number}"


def make_path(rng: random.Random, number: int, kinds: tuple[str, ...], trouble: float) -> str:
    return f"/v1/{_draw(rng, kinds, BAD_REQUESTS, trouble)}/{number}"


def _draw(rng: random.Random, kinds: Sequence[str], bad: Sequence[str], trouble: float) -> str:
    if kinds:
        return rng.choice(kinds)
    return rng.choice(bad) if rng.random() < trouble else rng.choice(GOOD)


def kind_of(url: str) -> tuple[str, int]:
    """What a target does, and how often before it is fine."""
    word = url.split("/")[-2]
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

    def gateway_for(self, process: Process) -> Gateway:
        return Gateway(process, self._fetch)

    async def _fetch(self, process: Process, url: str, deadline_s: float) -> Content:
        job_id, index, lease = HOLDING.get()
        world, rng = self._world, self._world.rng
        self._serial += 1
        earlier = self.visits.setdefault((job_id, index), [])
        visit = Visit(self._serial, lease, process.invocation, world.loop.time())
        world.checker.fetching((job_id, index), url, visit, earlier)
        earlier.append(visit)
        if not url.startswith("/"):  # the gateway is not paced
            self._under_way[visit.serial] = visit
        kind, times = kind_of(url)
        taken = {"slow": rng.uniform(15, 39), "hang": deadline_s, "stuck": 1_000.0}.get(kind, rng.expovariate(1))
        again = times == ALWAYS or len(earlier) <= times
        if kind == "stuck" and not again:
            taken = 1.0
        if not url.startswith("/"):
            alive = [one for one in self._under_way.values() if one.ended is None and one.invocation.owns]
            self.begun.append((visit.began, len(alive)))
        try:
            await process.sleep(min(taken, deadline_s) if kind != "stuck" else taken)
            if kind == "crash" and again:
                process.kill(f"fetching {index} of {job_id}")
                await process.sleep(0)
            content = self._answer(kind, again, url, visit)
        except BaseException as error:
            late = kind == "hang" and deadline_s < REQUEST_SECONDS - 10 and url.startswith("/")
            visit.result = "Late" if late else type(error).__name__
            raise
        finally:
            visit.ended = world.loop.time()
            self._under_way.pop(visit.serial, None)
            world.note(process.name, f"fetched {index} of {job_id}: {kind} {visit.result or 'content'}")
            world.checker.fetched((job_id, index), visit)
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
            case "cut" if again:
                raise TargetCut("It broke off.")
            case "bug":
                raise ZeroDivisionError("a fault of the pipeline")
        body = f"{url}#{visit.serial}".encode()
        if kind in {"large", "fat"}:
            body += NOISE
        return Content(body, "text/plain", {"chars": len(body)})


class Gateway:
    """The model gateway of one process: a request's path stands for what a URL does on the web."""

    def __init__(self, process: Process, fetch: Callable[[Process, str, float], Awaitable[Content]]) -> None:
        self._process = process
        self._fetch = fetch

    @asynccontextmanager
    async def send(self, request: UpstreamRequest, seconds: float) -> AsyncIterator[UpstreamResponse]:
        if json.loads(request.body)["path"] != request.path:
            broken("1 one outcome", f"{request.request_id} is sent with the body {request.body!r}")
        content = await self._fetch(self._process, request.path, seconds)
        status = 500 if kind_of(request.path)[0] == "error" else 200
        size = len(content.body)
        yield UpstreamResponse(status, content.media_type, size, io.BytesIO(content.body), None, None)
