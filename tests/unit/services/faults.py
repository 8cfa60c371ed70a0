"""What can go wrong between a process and its ports: requests and answers that are lost, and death."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from sift.errors import Unavailable


class Killed(BaseException):
    """The process is gone; nothing in it may catch this."""


class Fault(Enum):
    """What happens at one call."""

    REQUEST_LOST = auto()  # it never gets there
    ANSWER_LOST = auto()  # it is done, and the caller is not told
    REPEATED = auto()  # its answer was lost and the SDK sent it again
    DEATH_BEFORE = auto()
    DEATH_AFTER = auto()


Plan = Callable[[int, str], Fault | None]


class Life:
    """One process: its calls are numbered, named `port.method`, and met with a fault where the plan has one."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan: Plan = plan or (lambda _number, _name: None)
        self.calls: list[str] = []
        self.dead = False

    def wrap(self, kind: str, port: Any) -> Any:
        """The port as this process sees it."""
        return _Port(kind, port, self)

    async def call(self, name: str, method: Any, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)  # others get their turn, as they do when a call goes over a network
        if self.dead:
            raise Killed
        fault = self.plan(len(self.calls), name)
        self.calls.append(name)
        if fault is Fault.DEATH_BEFORE:
            self.dead = True
            raise Killed
        if fault is Fault.REQUEST_LOST:
            raise Unavailable(f"{name}: lost")
        answer = await method(*args, **kwargs)
        if fault is Fault.REPEATED:
            answer = await method(*args, **kwargs)
        if fault is Fault.DEATH_AFTER:
            self.dead = True
            raise Killed
        if fault is Fault.ANSWER_LOST:
            raise Unavailable(f"{name}: answer lost")
        return answer


class _Port:
    def __init__(self, kind: str, port: Any, life: Life) -> None:
        self._kind = kind
        self._port = port
        self._life = life

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._life.call(f"{self._kind}.{name}", method, *args, **kwargs)

        return call


def at(name: str, fault: Fault, times: int = 1) -> Plan:
    """The fault at the first calls of this name."""
    left = [times]

    def plan(_number: int, called: str) -> Fault | None:
        if called == name and left[0]:
            left[0] -= 1
            return fault
        return None

    return plan


def at_number(number: int, fault: Fault) -> Plan:
    """The fault at the call of this number."""
    return lambda called, _name: fault if called == number else None
