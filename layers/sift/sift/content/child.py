"""The handler's side of the fork server: starts it, hands it documents, and outlives whatever becomes of either."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import sift
from sift.content import frames
from sift.content.endings import Crashed, Ending, judge, too_slow
from sift.content.sandbox import ChildLimits, close_to_others, kill
from sift.errors import TargetBusy, TargetFailed

__all__ = ["Crashed", "ForkServer"]

_BOOT = (
    "import sys, json; settings = json.loads(sys.argv[1]); sys.path[:] = settings['path']; "
    "from sift.content.sandbox import main; main(sys.argv[1])"
)

#: A child over its time is ended by the server; only when that says nothing for so many seconds, from here.
_GRACE_S = 1.0

#: Where this package is, however it was found: the server knows plain folders only.
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(sift.__file__)))

#: In place of a last report: the server ended before it could give one.
_GONE = 0

#: A document of more bytes is read while no other one is: of these two at once would take too much memory together.
LARGE_BYTES = 2_000_000

T = TypeVar("T")

_log = logging.getLogger(__name__)


class _ServerGone(Exception):
    """The fork server ended while a document was with it."""


@dataclass
class _Child:
    """A document's child as far as reports tell: its process id, and how it ended."""

    started: asyncio.Future[int]
    ending: asyncio.Future[Ending]


class ForkServer:
    """A process that parses documents in children of its own, at most `parallel` at a time and a large one alone.

    `entry` is `module:function` with the signature of `sandbox.Entry`; `prepare` is `module:function` without
    arguments, called once before the first child: children open no file and import nothing, so all that they need
    has to be there by then. It starts with the first document (or `start`) and again whenever it died.
    Belongs to one event loop.
    """

    def __init__(
        self,
        entry: str,
        prepare: str | None = None,
        limits: ChildLimits | None = None,
        *,
        parallel: int = 2,
        output_bytes: int = 64 * 1024 * 1024,
        path: Sequence[str] | None = None,
    ) -> None:
        self._entry = entry
        self._prepare = prepare
        self._limits = limits or ChildLimits()
        self._parallel = parallel
        self._turns = asyncio.Semaphore(parallel)
        self._gathering = asyncio.Lock()
        self._output_bytes = output_bytes
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._reports = b""
        self._children: dict[int, _Child] = {}
        self._number = 0
        self.last: Ending | None = None
        """How the child that ended last did, and what it used."""

    @property
    def pid(self) -> int | None:
        """Process id of the server, or None while there is none."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the server if it is not there; returns at once, the libraries load meanwhile.

        Raises TargetFailed crashed when the system has no process to give.
        """
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return
        self._drop()
        if not close_to_others():
            _log.warning("this process could not be closed to its children")
        ours, theirs = socket.socketpair()
        settings = {
            "path": list(self._path or [*(os.path.abspath(entry) for entry in sys.path), _HOME]),
            "control": theirs.fileno(),
            "entry": self._entry,
            "prepare": self._prepare,
            "limits": asdict(self._limits),
        }
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
                    [sys.executable, "-I", "-S", "-c", _BOOT, json.dumps(settings)],
                    env=_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    cwd="/",
                )
        except OSError as error:
            ours.close()
            raise _not_running() from error
        ours.setblocking(False)
        self._control = ours
        asyncio.get_running_loop().add_reader(ours.fileno(), self._on_report)

    async def run(
        self, head: dict[str, Any], body: bytes, wall_s: float, within_s: float | None = None
    ) -> tuple[dict[str, Any], bytes]:
        """Have a child work on one document for `wall_s` seconds, `within_s` seconds from now (`wall_s` unless told).

        At most half of `within_s` is spent on waiting for a turn: what is not read for lack of one is TargetBusy and
        no fault of the document. A server that died is started once more.
        Raises TargetFailed: timeout, too_large, damaged (`Crashed` when a signal ended it), crashed; or TargetBusy.
        """
        within_s = wall_s if within_s is None else within_s
        ends_at = time.monotonic() + within_s
        is_large = len(body) > LARGE_BYTES
        async with self._turn(within_s / 2, self._parallel if is_large else 1):
            try:
                async with asyncio.timeout(ends_at - time.monotonic()):
                    if is_large:
                        await self.wait_ended()
                    for _ in range(2):
                        with contextlib.suppress(_ServerGone):
                            return await self._run_once(frames.pack(head, len(body)), body, wall_s)
            except TimeoutError as error:
                raise too_slow() from error
        raise _not_running()

    async def wait_ended(self) -> None:
        """Wait until every child that had a document has ended: an answer may be there a moment before that."""
        endings = [asyncio.shield(child.ending) for child in self._children.values()]
        await asyncio.gather(*endings, return_exceptions=True)

    async def aclose(self) -> None:
        """End the server and its children."""
        self._drop()

    @asynccontextmanager
    async def _turn(self, patience_s: float, count: int) -> AsyncIterator[None]:
        """Hold `count` turns; TargetBusy when they are not to be had in time."""
        held = 0
        try:
            try:
                async with asyncio.timeout(patience_s), self._gathering:  # or two would wait for each other's for ever
                    while held < count:
                        await self._turns.acquire()
                        held += 1
            except TimeoutError as error:
                raise TargetBusy("The worker had no time to read the document.") from error
            yield
        finally:
            for _ in range(held):
                self._turns.release()

    async def _run_once(self, head: bytes, body: bytes, wall_s: float) -> tuple[dict[str, Any], bytes]:
        self.start()
        self._number = number = (self._number + 1) % 2**32
        loop = asyncio.get_running_loop()
        child = self._children[number] = _Child(loop.create_future(), loop.create_future())
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with ours:
                with theirs:
                    self._order(frames.RUN, number, int(wall_s * 1000), [theirs.fileno()])
                # No document goes to a child that could not be killed if the document had it kill the server.
                # Nor does its time run while the server still prepares itself.
                await child.started
                async with asyncio.timeout(wall_s + _GRACE_S):
                    answer = await self._converse(ours, head, body)
                    if len(body) <= LARGE_BYTES:
                        # Who has said all is done with: that its memory is taken down need not be waited for.
                        with contextlib.suppress(ValueError):
                            return frames.unpack(answer)
                    ending = await child.ending
            if ending.what == _GONE:
                raise _ServerGone
            return judge(answer, ending)
        finally:
            # Whoever waits for the end and is cancelled cancels that future: the child then lives on.
            if not child.ending.done() or child.ending.cancelled():
                with contextlib.suppress(_ServerGone):
                    self._order(frames.KILL, number, 0)

    async def _converse(self, channel: socket.socket, head: bytes, body: bytes) -> bytearray:
        loop = asyncio.get_running_loop()
        answer = bytearray()
        # A child that dies early resets the stream; how it ended is told by the server.
        with contextlib.suppress(ConnectionError):
            await loop.sock_sendall(channel, head)
            await loop.sock_sendall(channel, body)
            channel.shutdown(socket.SHUT_WR)
            while part := await loop.sock_recv(channel, 1 << 18):
                answer += part
                if len(answer) > self._output_bytes:
                    raise TargetFailed("too_large", f"The content is over {self._output_bytes} bytes.")
        return answer

    def _order(self, verb: int, number: int, wall_ms: int, fds: Sequence[int] = ()) -> None:
        if self._control is None:
            raise _ServerGone
        try:
            socket.send_fds(self._control, [frames.ORDER.pack(verb, number, wall_ms)], list(fds))
        except OSError as error:
            self._drop()
            raise _ServerGone from error

    def _on_report(self) -> None:
        if self._control is None:
            return
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._drop()
            return
        self._reports += data
        while len(self._reports) >= frames.REPORT.size:
            number, what, value, *used = frames.REPORT.unpack_from(self._reports)
            self._reports = self._reports[frames.REPORT.size :]
            if what == frames.STARTED:
                _settle(self._children[number].started, value)
            else:
                child = self._children.pop(number)
                self.last = Ending(what, value, *used)
                _settle(child.started, 0)
                _settle(child.ending, self.last)

    def _drop(self) -> None:
        """Forget the server: its socket closes, which ends it, and every document with it is given back."""
        control, self._control, self._reports = self._control, None, b""
        if control is not None:
            asyncio.get_running_loop().remove_reader(control.fileno())
            control.close()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        children, self._children = self._children, {}
        for child in children.values():
            if not child.ending.done():
                if child.started.done() and not child.started.cancelled() and (pid := child.started.result()):
                    kill(pid)  # it dies with the server, unless a document took it over
                _settle(child.started, 0)
                _settle(child.ending, Ending(_GONE, 0))


def _settle(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


def _environment() -> dict[str, str]:
    """Nothing, but for where a shared libpython lies outside the loader's own paths (as in Lambda's runtime)."""
    directory = sysconfig.get_config_var("LIBDIR")
    return {"LD_LIBRARY_PATH": directory} if sysconfig.get_config_var("Py_ENABLE_SHARED") and directory else {}


def _not_running() -> TargetFailed:
    return TargetFailed("crashed", "The document's reader could not be kept running.", "Submit it again.")
