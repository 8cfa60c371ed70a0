"""What a child that a document took over might do; runs in the fork server of the tests."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from typing import Any


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
    if act == "fork":
        if os.fork() == 0:
            time.sleep(60)
        time.sleep(60)
    if act == "kill-server":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if act == "write":
        return {"error": _attempt(lambda: _write(head["path"]))}, b""
    if act == "read":
        return {"error": _attempt(lambda: _read(head["path"]))}, b""
    if act == "limits":
        import resource

        return {"memory": resource.getrlimit(resource.RLIMIT_AS)[0], "parent": os.getppid()}, b""
    return {}, b""


def act_again(head: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    return act_again(head)


def _attempt(action: Any) -> str:
    try:
        action()
    except OSError as error:
        return type(error).__name__
    return ""


def _write(path: str) -> None:
    with open(path, "wb") as file:
        file.write(b"x")


def _read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)
