"""Runs in a process of its own, with secrets in its environment: what its hostile children get to see, as JSON."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from sift.content.child import ForkServer
from sift.content.sandbox import ChildLimits

SECRET_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


async def look(limits: ChildLimits) -> dict[str, Any]:
    """The findings of children under `limits`."""
    secret = os.environ["AWS_SECRET_ACCESS_KEY"]
    marker, tail = secret[:16], secret[16:]
    known = {"marker": marker, "digest": hashlib.sha256(tail.encode()).hexdigest()}
    server = ForkServer("hostile_entry:act", limits=limits, path=[str(Path(__file__).parent), *sys.path])
    with socket.create_server(("127.0.0.1", 0)) as listener:

        async def ask(body: bytes = b"", **head: Any) -> dict[str, Any]:
            return (await server.run(head, body, 30.0))[0]

        async def attempt(what: str, of: Any = None) -> str:
            return str((await ask(act="try", what=what, of=of))["error"])

        address = listener.getsockname()[:2]
        state = await ask(act="state")
        others = {"handler": os.getpid(), "server": state["server"]}
        files = [f"/proc/{pid}/{name}" for pid in others.values() for name in ("environ", "mem", "maps")]
        findings = {
            "uid": os.getuid(),
            "descriptors": state["descriptors"],
            "environment": sorted((await ask(act="echo"))["environment"]),
            "secret in the child": await scan(ask, known),
            "secret in a child that was told": await scan(ask, known, secret.encode()),
            "files": {path: await attempt("read", path) for path in files},
            "descriptors of others": [await attempt("follow", f"/proc/{pid}/fd/0") for pid in others.values()],
            "own environment file": await attempt("read", "/proc/self/environ"),
            "trace": [await attempt("trace", pid) for pid in others.values()],
            "memory": [await attempt("read memory", [pid, id(secret)]) for pid in others.values()],
            "connect": await attempt("connect", address),
            "close and connect": await attempt("close and connect", address),
            "raise limits": await attempt("raise limits"),
            "import": await attempt("import", "wave"),
            "write": await attempt("write", "/tmp/sift-confinement"),
            "fork": await attempt("fork"),
        }
    await server.aclose()
    return findings


async def scan(ask: Any, known: dict[str, str], body: bytes = b"") -> int | str:
    """How often the secret stands in a child's memory; why not, where it can't even read the list of its memory."""
    try:
        return int((await ask(body, act="scan", **known))["found"])
    except Exception as error:  # what is expected is in the test
        return str(error)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(look(ChildLimits(**json.loads(sys.argv[1]))))))
