"""The handler's side of the fork server: starts it, hands it documents, and turns every bad end into a typed error."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sift.content import frames
from sift.content.sandbox import ChildLimits, close_to_others
from sift.errors import TargetFailed

_BOOT = (
    "import sys, json; settings = json.loads(sys.argv[1]); sys.path[:] = settings['path']; "
    "from sift.content.sandbox import main; main(sys.argv[1])"
)


class Crashed(TargetFailed):
    """A child died of a signal while it held the document: a caller with another parser may try that one.

    `signal` is its number.
    """

    def __init__(self, signal: int) -> None:
        self.signal = signal
        super().__init__("damaged", "The document broke its reader.", "Use mode raw to get the bytes.")


class _ServerGone(Exception):
    """The fork server ended while a document was with it."""


class ForkServer:
    """A process that parses documents in children of its own, at most `parallel` at a time.

    `entry` is `module:function` with the signature of `sandbox.Entry`; `preload` are modules the server
    imports before it forks. It starts with the first document (or `start`) and again whenever it died.
    Belongs to one event loop.
    """

    def __init__(
        self,
        entry: str,
        preload: Sequence[str] = (),
        limits: ChildLimits | None = None,
        *,
        parallel: int = 2,
        output_bytes: int = 64 * 1024 * 1024,
        path: Sequence[str] | None = None,
    ) -> None:
        self._entry = entry
        self._preload = list(preload)
        self._limits = limits or ChildLimits()
        self._turns = asyncio.Semaphore(parallel)
        self._output_bytes = output_bytes
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._reports = b""
        self._exits: dict[int, asyncio.Future[tuple[int, bool]]] = {}
        self._number = 0

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
        close_to_others()
        ours, theirs = socket.socketpair()
        settings = {
            "path": list(self._path or [os.path.abspath(entry) for entry in sys.path]),
            "control": theirs.fileno(),
            "entry": self._entry,
            "preload": self._preload,
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

    async def run(self, head: dict[str, Any], body: bytes, wall_s: float) -> tuple[dict[str, Any], bytes]:
        """Have a child work on one document within `wall_s` seconds; a server that died is started once more.

        Raises TargetFailed: timeout, too_large, damaged (`Crashed` when a signal ended it), crashed.
        """
        message = frames.pack(head, body)
        try:
            async with asyncio.timeout(wall_s), self._turns:
                for _ in range(2):
                    with contextlib.suppress(_ServerGone):
                        return await self._run_once(message, wall_s)
        except TimeoutError as error:
            raise _too_slow() from error
        raise _not_running()

    async def aclose(self) -> None:
        """End the server and its children."""
        self._drop()

    async def _run_once(self, message: bytes, wall_s: float) -> tuple[dict[str, Any], bytes]:
        self.start()
        self._number = number = (self._number + 1) % 2**32
        loop = asyncio.get_running_loop()
        ended = self._exits[number] = loop.create_future()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with ours:
                with theirs:
                    self._order(frames.RUN, number, int(wall_s * 1000), [theirs.fileno()])
                answer = await self._converse(ours, message)
                status, overdue = await ended
            return _judge(answer, status, overdue)
        finally:
            if not ended.done():
                with contextlib.suppress(_ServerGone):
                    self._order(frames.KILL, number, 0)
            elif not ended.cancelled():
                ended.exception()
            self._exits.pop(number, None)

    async def _converse(self, channel: socket.socket, message: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        parts, size = [], 0
        # A child that dies early resets the stream; how it ended is told by the server.
        with contextlib.suppress(ConnectionError):
            await loop.sock_sendall(channel, message)
            channel.shutdown(socket.SHUT_WR)
            while part := await loop.sock_recv(channel, 1 << 18):
                size += len(part)
                if size > self._output_bytes:
                    raise TargetFailed("too_large", f"The content is over {self._output_bytes} bytes.")
                parts.append(part)
        return b"".join(parts)

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
        while len(self._reports) >= frames.EXIT.size:
            number, status, overdue = frames.EXIT.unpack_from(self._reports)
            self._reports = self._reports[frames.EXIT.size :]
            ended = self._exits.get(number)
            if ended is not None and not ended.done():
                ended.set_result((status, bool(overdue)))

    def _drop(self) -> None:
        """Forget the server: its socket closes, which ends it, and every document with it is given back."""
        control, self._control, self._reports = self._control, None, b""
        if control is not None:
            asyncio.get_running_loop().remove_reader(control.fileno())
            control.close()
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # its children die with it
            process.wait()
        for ended in self._exits.values():
            if not ended.done():
                ended.set_exception(_ServerGone())


def _environment() -> dict[str, str]:
    """Nothing, but for where a shared libpython lies outside the loader's own paths (as in Lambda's runtime)."""
    directory = sysconfig.get_config_var("LIBDIR")
    return {"LD_LIBRARY_PATH": directory} if sysconfig.get_config_var("Py_ENABLE_SHARED") and directory else {}


def _judge(answer: bytes, status: int, overdue: bool) -> tuple[dict[str, Any], bytes]:
    code = os.waitstatus_to_exitcode(status)
    if overdue or code == -signal.SIGXCPU:
        raise _too_slow()
    # The child's own word, or the kernel's when the whole machine ran out.
    if code in (frames.OUT_OF_MEMORY, -signal.SIGKILL):
        raise TargetFailed("too_large", "The document needs more memory than it may use.")
    if code < 0:
        raise Crashed(-code)
    if code != 0:
        raise TargetFailed("damaged", "The document cannot be read.", "Use mode raw to get the bytes.")
    try:
        return frames.unpack(answer)
    except ValueError as error:
        raise TargetFailed("damaged", "The document cannot be read.", "Use mode raw to get the bytes.") from error


def _not_running() -> TargetFailed:
    return TargetFailed("crashed", "The document's reader could not be kept running.", "Submit it again.")


def _too_slow() -> TargetFailed:
    return TargetFailed("timeout", "The document took too long to read.", "Use mode raw to get the bytes.")
