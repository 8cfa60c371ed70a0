"""What a child that a document took over might do; runs in the fork server of the tests."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import resource
import signal
import socket
import time
from typing import Any

from sift.content import frames


def prepare() -> None:
    """Called once by the fork server that runs `act`."""
    import jq  # noqa: F401 - children import nothing

    os.environ["PREPARED"] = "yes"


def refuse_two_forks() -> None:
    """Let the server that this is called in be refused two processes: the child ahead, and that of a document."""
    fork = os.fork
    left = [BlockingIOError(), BlockingIOError()]

    def refuse() -> int:
        if left:
            raise left.pop()
        return fork()

    os.fork = refuse


def find_children(pid: int) -> list[int]:
    """The children of a process, zombies included."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def find_busy(pid: int) -> list[int]:
    """Those of a server's children that have got a document: the one that waits is still of the server's group."""
    busy = []
    for child in find_children(pid):
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(child) != os.getpgid(pid):
                busy.append(child)
    return busy


def act(head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    act = str(head["act"])
    if act == "echo":
        return {"length": len(body), "environment": dict(os.environ)}, body
    if act == "loop":
        while True:
            pass
    if act == "sleep":
        time.sleep(60)
    if act == "memory":
        blocks = []
        while True:
            blocks.append(bytearray(32 << 20))
    if act == "segv":
        ctypes.string_at(0)
    if act == "abort":
        os.abort()
    if act == "oom":
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "exit":
        os._exit(3)
    if act == "raise":
        raise ValueError("unexpected")
    if act == "recurse":
        return act_again(head)
    if act == "flood":
        return {}, b"x" * (8 << 20)
    if act == "garbage":
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(fd, b"\xff" * 64)
        os._exit(0)
    if act == "cut":
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(fd, frames.pack({}, 5) + b"1234")
        os._exit(0)
    if act == "linger":
        os._exit = lambda code: time.sleep(600)  # type: ignore[assignment]
        return {}, body
    if act == "fork":
        if os.fork() == 0:
            time.sleep(60)
        time.sleep(60)
    if act == "flee":
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
        return {}, b""
    if act == "silent":
        os.closerange(3, 64)
        time.sleep(60)
    if act == "kill-server":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if act == "outlive-server":
        ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # takes back the signal at its parent's death
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if act == "jq":
        return {}, _run_jq(str(head["program"]), body)
    if act == "try":
        return {"error": _attempt(head["what"], head.get("of"))}, b""
    if act == "scan":
        return {"found": _scan(head["marker"].encode(), head["digest"])}, b""
    if act == "others":
        return {"others": _count_others()}, b""
    if act == "state":
        return {
            "memory": resource.getrlimit(resource.RLIMIT_AS)[0],
            "server": os.getppid(),
            "pid": os.getpid(),
            "descriptors": [fd for fd in range(256) if _is_open(fd)],
        }, b""
    return {}, b""


def act_again(head: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    return act_again(head)


def _run_jq(program: str, body: bytes) -> bytes:
    import jq

    signal.setitimer(signal.ITIMER_PROF, 1.0)
    return "\n".join(map(str, jq.compile(program).input_text(body.decode()))).encode()


def _count_others() -> int:
    """The most other children of the server that were seen in a fifth of a second."""
    most, server = 0, os.getppid()
    for _ in range(20):
        most = max(most, len(find_busy(server)) - 1)
        time.sleep(0.01)
    return most


def _is_open(fd: int) -> bool:
    with contextlib.suppress(OSError):
        os.fstat(fd)
        return True
    return False


def _attempt(what: str, of: Any) -> str:
    """Name of the error that an attempt ends in; "" when it succeeds."""
    try:
        {
            "read": lambda: os.read(os.open(of, os.O_RDONLY), 1),
            "follow": lambda: os.readlink(of),
            "write": lambda: os.write(os.open(of, os.O_WRONLY | os.O_CREAT), b"x"),
            "connect": lambda: socket.socket().connect(tuple(of)),
            "close and connect": lambda: (os.close(0), socket.socket().connect(tuple(of))),
            "raise limits": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
            "import": lambda: __import__(of),
            "fork": lambda: os.fork() or os._exit(0),
            "trace": lambda: _trace(of),
            "read memory": lambda: _read_memory(*of),
        }[what]()
    except (OSError, ValueError, ImportError) as error:
        return type(error).__name__
    return ""


def _trace(pid: int) -> None:
    """PTRACE_SEIZE of another process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, pid, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def _read_memory(pid: int, address: int) -> None:
    """process_vm_readv of a few bytes of another process."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = ctypes.create_string_buffer(8)
    spans = [(ctypes.c_size_t * 2)(ctypes.addressof(here), 8), (ctypes.c_size_t * 2)(address, 8)]
    if libc.process_vm_readv(pid, spans[0], ctypes.c_ulong(1), spans[1], ctypes.c_ulong(1), ctypes.c_ulong(0)) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_readv")


def _scan(marker: bytes, digest: str) -> int:
    """How often `marker`, and after it 16 bytes with this SHA-256, stands in any memory of this process.

    The rest of the secret is told by its digest only, so that what this function was told does not count.
    """
    found = 0
    with open("/proc/self/maps", encoding="utf-8") as file:
        regions = [line.split() for line in file]
    for span, access, *_, name in regions:
        if not access.startswith("r") or name in ("[vvar]", "[vsyscall]", "[vvar_vclock]"):
            continue
        start, end = (int(text, 16) for text in span.split("-"))
        for begin in range(start, end, 1 << 20):
            piece = ctypes.string_at(begin, min(end - begin, (1 << 20) + 64))
            for part in piece.split(marker)[1:]:
                found += hashlib.sha256(part[:16]).hexdigest() == digest
    return found
