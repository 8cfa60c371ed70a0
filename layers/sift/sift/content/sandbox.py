"""The fork server and its children: the only processes in which something untrusted is parsed.

Started by `sift.content.child` with an empty environment; one control socket is all it shares with the handler.
For each document it forks a child under limits of memory, CPU, files and wall time, and reports how it ended.
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
from typing import Any, NoReturn

from sift.content import frames

Entry = Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True)
class ChildLimits:
    """What one child may use: bytes of address space, seconds of CPU, open files."""

    memory_bytes: int = 768 * 1024 * 1024
    cpu_s: int = 20
    files: int = 64


@dataclass
class _Running:
    number: int
    ends_at: float
    overdue: bool = False


def close_to_others() -> None:
    """Make this process non-dumpable (Linux): /proc/<pid>/environ and its memory are closed to its children."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def serve(control_fd: int, entry: str, preload: list[str], limits: ChildLimits) -> None:
    """Fork a child for each order on the control socket until that closes. `entry` is `module:function`."""
    close_to_others()
    module, _, name = entry.partition(":")
    run: Entry = getattr(importlib.import_module(module), name)
    for library in preload:
        importlib.import_module(library)
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
        self._wake_read, self._wake_write = os.pipe()
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)

    def loop(self) -> None:
        while True:
            control = self._control.fileno()
            readable, _, _ = select.select([control, self._wake_read], [], [], self._patience())
            if self._wake_read in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
            if control in readable and not self._take_order():
                break
            self._end_overdue()
            self._reap()
        for pid in self._children:
            _kill(pid)

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
                    _kill(pid)
            return True
        pid = os.fork()
        if pid == 0:
            self._become_child(fds[0])
        for fd in fds:
            os.close(fd)
        self._children[pid] = _Running(number, time.monotonic() + wall_ms / 1000)
        return True

    def _become_child(self, fd: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self._wake_read, self._wake_write, self._control.detach()):
                os.close(other)
            os.setpgid(0, 0)
            restrict(self._limits)
            with socket.socket(fileno=fd) as channel:
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
                _kill(pid)

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                self._control.sendall(frames.EXIT.pack(child.number, status, int(child.overdue)))


def run_document(channel: socket.socket, run: Entry) -> None:
    """Read one message from `channel`, run it, and write the answer."""
    parts = []
    while part := channel.recv(1 << 18):
        parts.append(part)
    head, body = frames.unpack(b"".join(parts))
    parts.clear()
    channel.sendall(frames.pack(*run(head, body)))


def restrict(limits: ChildLimits) -> None:
    """Put this process under its limits, for good: no capabilities, no new privileges, no files written."""
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits.files, limits.files))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        # Where the handler runs as root (a container, a test), non-dumpable alone would not keep a child out.
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # the group exists only once the child has made it
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def main(argument: str) -> None:
    """Entry of the process: one JSON argument with `path`, `control`, `entry`, `preload` and `limits`."""
    settings = json.loads(argument)
    serve(settings["control"], settings["entry"], settings["preload"], ChildLimits(**settings["limits"]))
