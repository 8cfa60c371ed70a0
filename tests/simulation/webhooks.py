"""Webhooks in the simulated world: their receivers, the function that posts to them, and what must hold of posts."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sift.errors import TargetBusy, TargetFailed
from sift.queue.ports import Received
from sift.services.notify import Notifier
from sift.webhooks import EVENTS, Secrets, signed_headers
from tests.simulation.invariants import ENDED, broken
from tests.simulation.processes import Process, break_off

if TYPE_CHECKING:
    from tests.simulation.world import World

NOTIFY_SECONDS = 30
#: What receivers do; `gone` and `blocked` go on with it when all is quiet, the others are well by then.
KINDS = ("ok", "ok", "down", "flaky", "slow", "refusing", "gone", "blocked")
FOR_GOOD = {"gone", "blocked"}


def make_webhook(rng: random.Random) -> Mapping[str, Any] | None:
    """A webhook for some of the works."""
    if rng.random() < 0.5:
        return None
    events = [event for event in EVENTS if rng.random() < 0.5] or ["job.ended"]
    url = f"https://hooks.example/{rng.choice(KINDS)}"
    return {"url": url, "events": events, "headers": {}, "metadata": {}}


def kind_of(webhook: Mapping[str, Any]) -> str:
    return str(webhook["url"].rsplit("/", 1)[1])


def secret_of(caller: str) -> Secrets:
    """Every caller has one from the beginning."""
    return Secrets("whsec_" + "QUJD" * 8)


@dataclass(frozen=True)
class Answer:
    """What a receiver answers."""

    status: int
    retry_after: float | None = None


class Receivers:
    """Keeps which events of which job were taken."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.taken: set[tuple[str, str]] = set()

    def poster_for(self, process: Process) -> _Poster:
        return _Poster(self, process)

    async def take(
        self, process: Process, url: str, headers: Mapping[str, str], body: bytes, deadline_s: float
    ) -> Answer:
        world, rng = self._world, self._world.rng
        event = json.loads(body)
        job_id, what = event["data"]["job_id"], event["type"]
        self._check(job_id, what, event["data"], url, headers, body)
        kind = "ok" if world.calm and kind_of({"url": url}) not in FOR_GOOD else kind_of({"url": url})
        await process.sleep(deadline_s if kind == "slow" else rng.expovariate(2))
        world.note(process.name, f"posts {what} of {job_id}: {kind}")
        match kind:
            case "slow":
                raise TargetFailed("timeout", "The server did not answer in time.")
            case "refusing":
                raise TargetBusy("The server refuses connections.")
            case "blocked":
                raise TargetFailed("blocked_address", "The address is not allowed.")
            case "down":
                return Answer(500)
            case "gone":
                return Answer(410)
            case "flaky" if rng.random() < 0.5:
                return Answer(503, 30.0)
        self.taken.add((job_id, what))
        return Answer(204)

    def _check(
        self, job_id: str, what: str, data: Mapping[str, Any], url: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Only what was asked for, to whom it was asked for, and true."""
        view, job = self._world.backend.view(), self._world.checker.ledger.jobs[job_id]
        webhook = job.meta.webhook
        if webhook is None or webhook["url"] != url or what not in webhook["events"]:
            broken("webhooks", f"{what} of {job_id} is posted to {url}; asked for is {webhook}")
        signed = {name: value for name, value in headers.items() if name.startswith("webhook-")}
        moment = int(signed["webhook-timestamp"])
        if signed != signed_headers([secret_of(job.meta.caller).current], signed["webhook-id"], moment, body):
            broken("webhooks", f"{what} of {job_id} is signed wrongly: {signed}")
        state = view.states.get(job_id)
        if what == "job.ended" and state is not None and (state.status not in ENDED or data["status"] != state.status):
            broken("webhooks", f"{job_id} is said to have ended as {data['status']}, and is {state.status}")
        if what.startswith("target.") and not job.deleting:  # its outcome may be gone already
            target = (job_id, data["index"])
            outcome = self._world.checker.ledger.final.get(target) or view.outcomes.get(target)
            if outcome is None or f"target.{outcome.status}" != what:
                broken("webhooks", f"{what} of {target} is posted, whose outcome is {outcome}")

    def at_the_end(self) -> None:
        """Every end that somebody asked for was taken, and its job says how its posts went."""
        view = self._world.backend.view()
        for job_id, job in self._world.checker.ledger.jobs.items():
            webhook, delivery = job.meta.webhook, view.deliveries.get(job_id)
            if webhook is None or job.deleting or "job.ended" not in webhook["events"]:
                continue
            for_good = kind_of(webhook) in FOR_GOOD
            if not for_good and (job_id, "job.ended") not in self.taken:
                broken("webhooks", f"nobody was told the end of {job_id}")
            if delivery is None or (delivery.state == "failed") != for_good:
                broken("webhooks", f"the posts of {job_id} to {webhook['url']} are said to be {delivery}")


class _Poster:
    """What a process posts through."""

    def __init__(self, receivers: Receivers, process: Process) -> None:
        self._receivers = receivers
        self._process = process

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_s: float) -> Answer:
        return await self._receivers.take(self._process, url, headers, body, deadline_s)


class NotifierProcess(Process):
    """An execution environment of functions/notify."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        backend = world.backend
        self.notifier = Notifier(
            store=self.port("store", backend.store),
            queue=self.port("notices", backend.notices),
            dead_letters=self.port("dead_letters", backend.given_up),
            poster=world.receivers.poster_for(self),
            clock=self,
            random_source=world.rng,
        )
        self.notifier.judge.unforeseen = break_off

    async def run(self, batch: Sequence[Received]) -> list[str]:
        loop = self.world.loop
        end = loop.time() + NOTIFY_SECONDS
        return await self.notifier.run_batch(batch, lambda: end - loop.time())


async def notify(world: World) -> None:
    """The mapping's poller: what a batch does not keep is deleted, unless that is lost."""
    process, lives = NotifierProcess(world, "notifier"), 1
    notices = world.backend.notices
    while True:
        await asyncio.sleep(5.0 if world.calm else world.rng.uniform(0.5, 5))
        batch = [Received(receipt, receipt, m.body, m.receives) for receipt, m in notices.receive(10)]
        if not batch:
            continue
        if not process.free:
            lives += 1
            process = NotifierProcess(world, f"notifier{lives}")
        ending, kept = await process.invoke(process.run(batch), NOTIFY_SECONDS)
        if ending != "returned":
            continue
        for received in batch:
            if received.message_id not in kept and (world.calm or world.rng.random() >= world.scenario.lost_deletes):
                notices.delete(received.receipt)
