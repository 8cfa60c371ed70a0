"""Processes that may die, freeze and be too slow, and what happens between them and their ports."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import io
import sys
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sift.errors import RequestRefused, Unavailable
from sift.jobs import State
from sift.store.ports import Changed
from tests.simulation.scenario import SENDS, Fault

if TYPE_CHECKING:
    from tests.simulation.world import World

#: What an invocation may end with: whoever asked is told.
ANSWERS = (Unavailable, RequestRefused)

#: Job, index and lease of the target that the current task claimed last.
HOLDING: contextvars.ContextVar[tuple[str, int, int]] = contextvars.ContextVar("holding")

#: A repeated transaction carries the same token, so that DynamoDB does it once; the rest may arrive long after.
TOKENED = {"store.commit", "store.settle", "store.hide"}
READS = (
    "get_",
    "count_",
    "list_",
    "live_jobs",
    "used_shards",
    "outbox",
    "removals",
    "caller_live",
    "visible",
    "link",
    "exists",
)

Ending = Literal["returned", "raised", "died", "timeout"]


@dataclass(eq=False)
class Invocation:
    """One piece of work of a process. `faulty`: something went wrong around it, so it may leave things undone."""

    process: Process
    began: float
    faulty: bool = False
    over: bool = False
    #: Per job: its state when this invocation last had to do with it, unless somebody else held the target, and what
    #: that called for.
    left: dict[str, tuple[State, str | None]] = field(default_factory=dict)

    @property
    def owns(self) -> bool:
        """Whether what it claimed is still its own to work on."""
        return not (self.over or self.process.dead or self.process.zombie)


def break_off() -> None:
    """In the place of a last catch: what nobody foresaw is to break the run. An invocation of the API may well end with
    a refusal; whoever has a last catch foresees those itself."""
    error = sys.exception()
    if isinstance(error, ANSWERS):
        raise AssertionError("nobody foresaw it") from error
    raise


class Process:
    """Has a clock of its own, works on one thing at a time, and reaches the world through ports only."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        most = world.scenario.skew_ms
        self.skew_ms = world.rng.choice([-most, most]) if world.scenario.far_off else world.rng.randint(-most, most)
        self.dead = False
        self.zombie = False
        self.reading = False
        self.invocation = Invocation(self, 0.0, over=True)
        self._thaws_at = 0.0
        self._verdict: asyncio.Future[tuple[Ending, Any]] | None = None

    # its clock

    def now_ms(self) -> int:
        return self.world.now_ms() + self.skew_ms

    async def sleep(self, seconds: float) -> None:
        """Returns never when the process is dead by then, and late when it is frozen."""
        await asyncio.sleep(seconds)
        loop = self.world.loop
        while self._thaws_at > loop.time():
            await asyncio.sleep(self._thaws_at - loop.time())
        if self.dead:
            await loop.create_future()

    # what befalls it

    def kill(self, why: str) -> None:
        if self.dead:
            return
        self.dead = True
        self.invocation.faulty = True
        self.world.note(self.name, f"dies: {why}")
        self._judge("died", None)

    def freeze(self, seconds: float) -> None:
        self.zombie = True
        self._thaws_at = self.world.loop.time() + seconds
        self.world.all_thawed_at = max(self.world.all_thawed_at, self._thaws_at)
        self.world.note(self.name, f"freezes for {seconds:.0f} s")

    # its work

    @property
    def free(self) -> bool:
        return self.invocation.over and not self.dead and not self.zombie

    async def invoke(
        self, work: Coroutine[Any, Any, Any], limit: float, patience: float | None = None
    ) -> tuple[Ending, Any]:
        """Work for at most `limit` seconds, then it is killed; whoever waits gives up after `patience`."""
        loop = self.world.loop
        self.invocation = invocation = Invocation(self, loop.time())
        self._verdict = verdict = loop.create_future()
        task = loop.create_task(work)
        self.world.tasks[task] = None

        def ended(task: asyncio.Task[Any]) -> None:
            invocation.over = True
            self.world.tasks.pop(task, None)
            if task.cancelled():
                return
            error = task.exception()
            if error is not None and not isinstance(error, ANSWERS):
                self.world.surprised(self.name, error)
            self._judge(*(("returned", task.result()) if error is None else ("raised", error)))

        def expire() -> None:
            if self.invocation is invocation and not invocation.over:
                if not self.zombie:
                    self.kill("its time is up")
                self._judge("timeout", None)

        task.add_done_callback(ended)
        timers = [loop.call_later(limit, expire)]
        if patience is not None:
            timers.append(loop.call_later(patience, lambda: verdict.done() or verdict.set_result(("timeout", None))))
        answer = await verdict
        if invocation.over:
            for timer in timers:
                timer.cancel()
        return answer

    def _judge(self, ending: Ending, value: Any) -> None:
        if self._verdict is not None and not self._verdict.done():
            self._verdict.set_result((ending, value))

    # its ports

    def port(self, kind: str, target: Any) -> Any:
        return _Port(self, kind, target)

    async def call(self, name: str, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One call: it takes a while on its way there and back, and may meet with a fault."""
        world, rng = self.world, self.world.rng
        await self.sleep(rng.expovariate(50))
        fault = world.draw_fault(name)
        if fault is not None:
            self.invocation.faulty = True
        # What a file held when it was sent is what arrives, however late and often.
        sent = tuple(io.BytesIO(given.read()) if isinstance(given, io.BytesIO) else given for given in args)
        effect = Effect(self, name, method, sent, kwargs, self.invocation, self.reading)
        answer = await self._meet(fault, effect)
        if name == "store.claim":
            HOLDING.set(args[:3])
        if rng.random() < 0.3:
            await self.sleep(rng.expovariate(50))
        return answer

    async def _meet(self, fault: Fault | None, effect: Effect) -> Any:
        rng = self.world.rng
        match fault:
            case None:
                return await effect.take()
            case Fault.DEATH_BEFORE:
                self.kill(f"before {effect.name}")
            case Fault.DEATH_AFTER:
                await effect.take()
                self.kill(f"after {effect.name}")
            case Fault.FROZEN:
                before = rng.random() < 0.5
                answer = None if before else await effect.take()
                self.freeze(rng.uniform(95, rng.choice([200, 400, 900])))
                await self.sleep(0)
                return await effect.take() if before else answer
            case Fault.SLOW:
                await self.sleep(rng.uniform(1, 25))
                answer = await effect.take()
                await self.sleep(rng.uniform(0, 5))
                return answer
            case Fault.REPEATED:
                await effect.take("its answer is lost")
                await self.sleep(rng.uniform(0.05, 3))
                return await effect.take("again", repeated=True)
            case Fault.ECHO if effect.name not in TOKENED:
                answer = await effect.take()
                self.world.later(rng.uniform(0.05, 30), effect, "once more")
                return answer
            case Fault.ANSWER_LOST:
                await effect.take("its answer is lost")
            case Fault.LATE if not effect.reads:
                self.world.later(rng.uniform(0.05, 30), effect, "late")
            case Fault.PARTIAL | Fault.DUPLICATED | Fault.DROPPED:
                return await effect.send(fault)
        await self.sleep(rng.uniform(0, 5))
        self.world.note(self.name, f"{effect.name} -> Unavailable", fault)
        raise Unavailable(f"{effect.name}: {fault}")


@dataclass(eq=False)
class Effect:
    """A call as the world sees it: one step."""

    process: Process
    name: str
    method: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    invocation: Invocation
    #: Made by a request that must not change anything.
    looking: bool

    @property
    def reads(self) -> bool:
        return self.name.split(".", 1)[1].startswith(READS)

    async def take(self, remark: str = "", *, repeated: bool = False) -> Any:
        for given in self.args:
            if isinstance(given, io.BytesIO):
                given.seek(0)
        answer = await self.process.world.step(self, remark)
        return dataclasses.replace(answer, repeated=repeated) if isinstance(answer, Changed) else answer

    async def send(self, fault: Fault) -> int:
        """What a queue may do to a batch of messages."""
        rng = self.process.world.rng
        messages = list(self.args[0])
        some = [message for message in messages if rng.random() < 0.5]
        if fault is Fault.DUPLICATED:
            self.args = ([*messages, *some],)
        else:
            self.args = (some,)
            lost = [(m.job_id, m.index) for m in messages if m not in some]
            self.process.world.checker.ledger.lost_messages.update(lost)
        await self.take(fault.name.lower())
        return len(some) if fault is Fault.PARTIAL else len(messages)


class _Port:
    def __init__(self, process: Process, kind: str, target: Any) -> None:
        self._process = process
        self._kind = kind
        self._target = target

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._process.call(f"{self._kind}.{name}", method, args, kwargs)

        return call


def can_meet(fault: Fault, name: str) -> bool:
    """Whether the fault makes sense at this call."""
    if name == "notices.send":
        return fault is not Fault.DROPPED  # nobody would say it again: what SQS has taken, it delivers
    return name == "queue.send" or fault not in SENDS
