"""The fork server and its children: the only processes in which something untrusted is parsed.

Started by `sift.content.child` with an empty environment; one control socket is all it shares with the handler.
Each document has a child of its own, forked before it is there, that puts itself under limits of memory and CPU, can
open no file, no socket and no process, and is ended when its time is over; the server reports how it ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, FrozenImporter
from typing import Any, NoReturn

from sift.content import frames

Entry = Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]

_PR_SET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 3, 4, 36, 38
_CAPABILITY_VERSION_3 = 0x20080522
# Made once and not in each child: that is half a millisecond, and a hundred pages of memory that it would copy.
_LIBC = ctypes.CDLL(None, use_errno=True)
_CAPABILITIES_OF_THIS = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()


@dataclass(frozen=True)
class ChildLimits:
    """What one child may use: bytes of address space, seconds of CPU, descriptors and processes.

    `descriptors` is RLIMIT_NOFILE: with 0, those it has work on, and the system gives it no other one, be it a file
    or a socket. `processes` is RLIMIT_NPROC, which does not bind root.
    """

    memory_bytes: int = 768 * 1024 * 1024
    cpu_s: int = 8
    descriptors: int = 0
    processes: int = 0


@dataclass
class _Running:
    number: int
    ends_at: float
    overdue: bool = False


@dataclass
class _Waiting:
    """A child that has no document yet, and the socket over which it gets the channel of one."""

    pid: int
    socket: socket.socket

    def take(self, channel: int) -> bool:
        """Hand it a document's channel; False when it has ended meanwhile."""
        with self.socket:
            try:
                socket.send_fds(self.socket, [b"1"], [channel])
            except OSError:
                return False
        return True


def close_to_others() -> bool:
    """Make this process non-dumpable: /proc/<pid>/environ and its memory are closed to its children.

    False where the system does not do it; elsewhere than on Linux there is nothing to be done.
    """
    if sys.platform != "linux":
        return True
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return bool(_LIBC.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)


def serve(control_fd: int, entry: str, prepare: str | None, limits: ChildLimits) -> None:
    """Fork a child for each order on the control socket until that closes.

    `entry` and `prepare` (called once before) are `module:function`.
    """
    close_to_others()
    run: Entry = _find(entry)
    if prepare is not None:
        _find(prepare)()
    gc.collect()
    gc.freeze()  # keeps the collector from touching, and so copying, what all children share
    with open(os.devnull, "wb") as devnull:  # from here on only documents could speak
        os.dup2(devnull.fileno(), 1)
        os.dup2(devnull.fileno(), 2)
    with socket.socket(fileno=control_fd) as control:
        _Server(control, run, limits).loop()


class _Server:
    def __init__(self, control: socket.socket, run: Entry, limits: ChildLimits) -> None:
        self._control = control
        self._run = run
        self._limits = limits
        self._children: dict[int, _Running] = {}
        self._waiting: _Waiting | None = None
        self._wake_read, self._wake_write = os.pipe()
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        if sys.platform == "linux":
            _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def loop(self) -> None:
        try:
            while True:
                # While a document is read, the child of the next one is forked: that is off the way of both.
                # There is none while another one is forked, or that would hold its socket.
                self._waiting = self._waiting or self._fork()
                control = self._control.fileno()
                readable, _, _ = select.select([control, self._wake_read], [], [], self._patience())
                if self._wake_read in readable:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                if control in readable and not self._take_order():
                    return
                self._end_overdue()
                self._reap()
        except ConnectionError:
            return  # the handler has gone
        finally:
            for pid in [*self._children, *([self._waiting.pid] if self._waiting else [])]:
                kill(pid)

    def _patience(self) -> float | None:
        if not self._children:
            return None
        return max(0.0, min(child.ends_at for child in self._children.values()) - time.monotonic())

    def _take_order(self) -> bool:
        order, fds, _, _ = socket.recv_fds(self._control, frames.ORDER.size, 1)
        if len(order) < frames.ORDER.size:
            return False
        verb, number, wall_ms = frames.ORDER.unpack(order)
        if verb == frames.KILL:
            for pid, child in self._children.items():
                if child.number == number:
                    kill(pid)
            return True
        chosen, self._waiting = self._waiting, None
        if chosen is None or not chosen.take(fds[0]):
            chosen = self._fork()
            if chosen is not None and not chosen.take(fds[0]):
                chosen = None
        for fd in fds:
            os.close(fd)
        if chosen is None:
            self._report(number, frames.REFUSED)
        else:
            self._children[chosen.pid] = _Running(number, time.monotonic() + wall_ms / 1000)
            self._report(number, frames.STARTED, chosen.pid)
        return True

    def _fork(self) -> _Waiting | None:
        """A child that waits for a document; None when the system has no process to give."""
        ours, theirs = socket.socketpair()
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            return None
        if pid == 0:
            ours.close()
            self._become_child(theirs)
        theirs.close()
        return _Waiting(pid, ours)

    def _become_child(self, waiting: socket.socket) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self._wake_read, self._wake_write, self._control.detach()):
                os.close(other)
            with waiting:
                _, fds, _, _ = socket.recv_fds(waiting, 1, 1)
            if fds:  # or the server has gone
                os.setpgid(0, 0)
                restrict(self._limits)
                with socket.socket(fileno=fds[0]) as channel:
                    run_document(channel, self._run)
                code = 0
        except MemoryError:
            code = frames.OUT_OF_MEMORY
        finally:
            # No return into the server's loop, and no exit handlers of libraries, whatever happened.
            os._exit(code)

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for pid, child in self._children.items():
            if child.ends_at <= now:
                child.overdue, child.ends_at = True, now + 1.0
                kill(pid)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                self._end_strays()
                return
            if self._waiting is not None and self._waiting.pid == pid:
                self._waiting.socket.close()
                self._waiting = None
            ended = self._children.pop(pid, None)
            if ended is not None:
                # macOS counts in bytes, Linux in KiB.
                peak_kib = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
                cpu_ms = int((usage.ru_utime + usage.ru_stime) * 1000)
                self._report(ended.number, frames.OVERDUE if ended.overdue else frames.ENDED, status, peak_kib, cpu_ms)

    def _end_strays(self) -> None:
        """Kill what a child forked, took out of its group and left behind: it comes to this process as to its parent.

        Only root can fork in a child at all.
        """
        with contextlib.suppress(OSError):  # there is no such list elsewhere than on Linux
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
                strays = {int(pid) for pid in file.read().split()} - set(self._children)
            for pid in strays:
                if self._waiting is None or self._waiting.pid != pid:
                    kill(pid)

    def _report(self, number: int, what: int, value: int = 0, peak_kib: int = 0, cpu_ms: int = 0) -> None:
        self._control.sendall(frames.REPORT.pack(number, what, value, peak_kib, cpu_ms))


def run_document(channel: socket.socket, run: Entry) -> None:
    """Read one message from `channel`, run it, and write the answer."""
    parts = []
    while part := channel.recv(1 << 18):
        parts.append(part)
    message = b"".join(parts)
    parts.clear()
    head, body = frames.unpack(message)
    del message
    head, body = run(head, body)
    channel.sendall(frames.pack(head, len(body)))
    channel.sendall(body)


def restrict(limits: ChildLimits) -> None:
    """Put this process under its limits, for good."""
    if not limits.descriptors:
        # What is not loaded by now is not there. Some libraries try an optional module with each document: a search of
        # folders that have changed would open them, and fail with another error than a module that is missing.
        sys.meta_path[:] = [BuiltinImporter, FrozenImporter]
    sys.dont_write_bytecode = True
    for what, soft, hard in (
        (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NPROC, limits.processes, limits.processes),
        (resource.RLIMIT_NOFILE, limits.descriptors, limits.descriptors),
    ):
        resource.setrlimit(what, (soft, hard))
    if sys.platform == "linux":
        # None of these is refused by a kernel, but some by the filters that containers and functions run under:
        # what keeps a child in has to be the limits above.
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        # Root could raise its limits again, and look into other processes whatever they have closed.
        _LIBC.capset(ctypes.byref(_CAPABILITIES_OF_THIS), ctypes.byref(_NO_CAPABILITIES))


def kill(pid: int) -> None:
    """Kill a child of the fork server, and what it forked."""
    for end in (os.killpg, os.kill):  # the group exists only once the child has made it
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _find(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def main(argument: str) -> None:
    """Entry of the process: one JSON argument with `path`, `control`, `entry`, `prepare` and `limits`."""
    settings = json.loads(argument)
    serve(settings["control"], settings["entry"], settings["prepare"], ChildLimits(**settings["limits"]))
