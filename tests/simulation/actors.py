"""What runs all the time: the queue's mapping with its workers, and the sweeper's schedule."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sift.jobs import Kind
from sift.queue.kinds import KindQueues
from sift.queue.ports import Received
from sift.services.advance import Advancer
from sift.services.assemble import Assembler
from sift.services.control import Controller
from sift.services.fetching import FetchRunner
from sift.services.inferring import InferenceRunner
from sift.services.notices import Notices
from sift.services.pace import Pacer
from sift.services.purge import Purger
from sift.services.read import Reader
from sift.services.results import Results
from sift.services.retry import Retrier
from sift.services.runner import Runner
from sift.services.submit import Submitter
from sift.services.sweep import Report, Sweeper
from sift.services.terms import Terms
from sift.services.work import Worker
from tests.simulation.backend import PART_BYTES, VISIBILITY_SECONDS, target_of
from tests.simulation.processes import Process, break_off
from tests.simulation.scenario import PACE
from tests.simulation.site import REQUEST_SECONDS

if TYPE_CHECKING:
    from tests.simulation.world import World

WORKER_SECONDS = 90
ASSEMBLE_SECONDS = 120
SWEEP_SECONDS = 55
API_SECONDS = 29


class FrankSweeper(Sweeper):
    """A sweeper whose last catch catches nothing."""

    def _unforeseen(self, job_id: str, report: Report) -> None:
        break_off()


class WorkerProcess(Process):
    """An execution environment of functions/fetch, or of functions/inference."""

    def __init__(self, world: World, name: str, kind: Kind) -> None:
        super().__init__(world, name)
        backend = world.backend
        store, queue = self.port("store", backend.store), self.port("queue", backend.queue_of(kind))
        blobs, bus = self.port("blobs", backend.blobs), self.port("bus", backend.bus)
        pacer = Pacer(store, self, PACE) if world.scenario.paced and kind == "fetch" else None
        runner: Runner = FetchRunner(world.site.fetch_for(self), blobs, self, pacer)
        if kind == "inference":
            runner = InferenceRunner(world.site.gateway_for(self), store, blobs, self, REQUEST_SECONDS)
        notices = Notices(self.port("notices", backend.notices), self)
        self.worker = Worker(
            store=store,
            queue=queue,
            dead_letters=self.port("dead_letters", backend.dead_letters),
            clock=self,
            advancer=Advancer(
                store, queue, blobs, bus, self, notices, assembly=self.port("assembly", backend.assembly)
            ),
            runner=runner,
            lease_seconds=world.scenario.lease,
            pacer=pacer,
            random_source=world.rng,
            notices=notices,
        )
        self.worker.judge.unforeseen = break_off

    async def run(self, batch: list[Received]) -> list[str]:
        loop = self.world.loop
        end = loop.time() + WORKER_SECONDS
        return await self.worker.run_batch(batch, lambda: end - loop.time())


class SweeperProcess(Process):
    """An execution environment of functions/sweep."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        backend = world.backend
        store, queue = self.port("store", backend.store), self.port("queue", backend.queue)
        blobs, bus = self.port("blobs", backend.blobs), self.port("bus", backend.bus)
        asks = self.port("queue", backend.asks)
        queues = KindQueues({"fetch": queue, "inference": asks})
        self.sweeper = FrankSweeper(
            store,
            queue,
            self,
            Advancer(
                store,
                queues,
                blobs,
                bus,
                self,
                Notices(self.port("notices", backend.notices), self),
                assembly=self.port("assembly", backend.assembly),
            ),
            Purger(store, blobs, self),
            visibility_seconds=VISIBILITY_SECONDS,
            others={"inference": asks},
        )

    async def run(self) -> None:
        loop = self.world.loop
        end = loop.time() + SWEEP_SECONDS
        await self.sweeper.sweep(lambda: end - loop.time())


class ApiProcess(Process):
    """An execution environment of functions/api."""

    def __init__(self, world: World, name: str, terms: Terms) -> None:
        super().__init__(world, name)
        backend = world.backend
        store, queue = self.port("store", backend.store), self.port("queue", backend.queue)
        blobs, bus = self.port("blobs", backend.blobs), self.port("bus", backend.bus)
        queues = KindQueues({"fetch": queue, "inference": self.port("queue", backend.asks)})
        assembly, notices = (
            self.port("assembly", backend.assembly),
            Notices(self.port("notices", backend.notices), self),
        )
        advancer = Advancer(store, queues, blobs, bus, self, notices, assembly=assembly)
        self.submitter = Submitter(store, queues, blobs, self, terms)
        self.reader = Reader(store, blobs, self)
        self.controller = Controller(self.reader, advancer, store, self)
        self.retrier = Retrier(self.reader, self.submitter)
        self.results = Results(self.reader, store, assembly, self)


class AssemblerProcess(Process):
    """An execution environment of functions/assemble."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        backend = world.backend
        store, blobs = self.port("store", backend.store), self.port("blobs", backend.blobs)
        assembly, reader = self.port("assembly", backend.assembly), Reader(store, blobs, self)
        self.assembler = Assembler(store, assembly, blobs, self, reader.segment, part_bytes=PART_BYTES)

    async def run(self, received: Received) -> list[str]:
        loop = self.world.loop
        # Now and then there is time for a step or two only.
        end = loop.time() + self.world.rng.choice([ASSEMBLE_SECONDS, ASSEMBLE_SECONDS, 61])
        return await self.assembler.run_batch([received], lambda: end - loop.time())


async def assemble(world: World, number: int) -> None:
    """One of the pollers of the results files' queue."""
    process, lives, idle = AssemblerProcess(world, f"assembler{number}"), 1, 0.0
    while True:
        received = world.backend.receive_assembly()
        if received is None:
            idle = min(20.0, idle * 2 + 0.3) if world.calm else world.rng.uniform(0.1, 2)
            await asyncio.sleep(idle)
            continue
        idle = 0.0
        if not process.free:
            lives += 1
            process = AssemblerProcess(world, f"assembler{number}.{lives}")
        world.note(process.name, f"receives {received.body}")
        ending, kept = await process.invoke(process.run(received), ASSEMBLE_SECONDS)
        if ending == "returned" and not kept and (world.calm or world.rng.random() >= world.scenario.lost_deletes):
            world.backend.assembly.delete(received.receipt)


async def work(world: World, kind: Kind, number: int) -> None:
    """One of a mapping's pollers: a batch at a time to a process that it starts anew when it has died."""
    name = f"{'worker' if kind == 'fetch' else 'asker'}{number}"
    process, lives, idle = WorkerProcess(world, name, kind), 1, 0.0
    while not world.workers_stopped:
        batch = world.backend.receive(kind, world.rng.randint(1, world.scenario.batch))
        if not batch:
            idle = min(20.0, idle * 2 + 0.3) if world.calm else world.rng.uniform(0.1, 2)
            await asyncio.sleep(idle)
            continue
        idle = 0.0
        if not process.free:
            lives += 1
            process = WorkerProcess(world, f"{name}.{lives}", kind)
        world.note(process.name, f"receives {[target_of(one.body) for one in batch]}")
        invocation_ends = process.invoke(process.run(batch), WORKER_SECONDS)
        ending, kept = await invocation_ends
        if ending == "returned":
            acknowledge(world, kind, process, batch, kept)


def acknowledge(world: World, kind: Kind, process: WorkerProcess, batch: list[Received], kept: list[str]) -> None:
    """Delete what the worker did not keep; a delete may be lost."""
    done = [received for received in batch if received.message_id not in kept]
    for received in done:
        if world.calm or world.rng.random() >= world.scenario.lost_deletes:
            world.backend.delete(kind, received)
            world.checker.acknowledged(process.invocation, target_of(received.body))
    world.checker.invoked(process.invocation, {target_of(received.body)[0] for received in done})


async def sweep_every_minute(world: World) -> None:
    """Reserved concurrency 1 and no retries: a sweep that takes too long is killed, and one that fails is over."""
    process, lives = SweeperProcess(world, "sweeper"), 1
    while True:
        await asyncio.sleep(60)
        if not process.free:
            lives += 1
            process = SweeperProcess(world, f"sweeper{lives}")
        world.spawn(process.invoke(process.run(), SWEEP_SECONDS))
