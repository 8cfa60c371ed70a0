"""A built function in the Lambda Runtime Interface Emulator, started by Lambda's own Python client from its artifact.

The emulator comes with the SAM CLI (samcli/local/rapid), pinned in requirements-sam.txt; the client is awslambdaric,
pinned in requirements-lambda.txt. Nothing of either is on the function's path but the client itself.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.build.built import ROOT

PYTHON = ROOT / ".venv-lambda" / "bin" / "python"
#: A function that does not answer by then never will, however slow the machine.
SECONDS = 240
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def find_emulator() -> Path | None:
    """The emulator's binary for this machine, or None."""
    machine = {"x86_64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), "")
    found = sorted((ROOT / ".venv-sam").glob(f"lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-{machine}"))
    return found[0] if found and os.access(found[0], os.R_OK) else None


@dataclass(frozen=True)
class Answer:
    """What an invocation returned, how long the caller waited for it, and the function's processor time so far."""

    value: Any
    seconds: float
    processor_s: float


class Running:
    """One execution environment: its first invocation is a cold start."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self._url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"

    def invoke(self, event: Any) -> Answer:
        """One invocation. Raises AssertionError when the function does not start or fails."""
        data = json.dumps(event).encode()
        began = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(self._url, data), timeout=SECONDS) as response:
            value = json.loads(response.read())
        seconds = time.perf_counter() - began
        if isinstance(value, dict) and "errorType" in value:
            raise AssertionError(value)
        return Answer(value, seconds, self.processor_seconds())

    def processor_seconds(self) -> float:
        """Of the function's process and the children that it has waited for."""
        return sum(sum(_times(pid)) for pid in _children(self._process.pid)) / _TICKS


@contextmanager
def started(
    roots: Sequence[Path], handler: str, environment: Mapping[str, str], emulator: Path, output: Path
) -> Iterator[Running]:
    """A function in an emulator of its own. `roots`: artifact, then layers. What it writes goes to `output`."""
    port, runtime_port = _free_ports(2)
    program = output.with_suffix(".emulator")
    program.write_bytes(emulator.read_bytes())  # a wheel's files need not be executable
    program.chmod(0o700)
    command = [
        str(program), "--runtime-interface-emulator-address", f"127.0.0.1:{port}", "--runtime-api-address",
        f"127.0.0.1:{runtime_port}", str(PYTHON), "-B", "-m", "awslambdaric", handler,
    ]  # fmt: skip
    paths = os.pathsep.join(str(root) for root in roots)
    variables = {
        "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": paths, "LAMBDA_TASK_ROOT": str(roots[0]),
        "AWS_LAMBDA_FUNCTION_TIMEOUT": "200", "AWS_LAMBDA_FUNCTION_NAME": "function", "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_SESSION_TOKEN": "local", **environment,
    }  # fmt: skip
    with output.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=roots[0], env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            _wait_until_open(port, process, output)
            yield Running(process, port)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_until_open(port: int, process: subprocess.Popen[bytes], output: Path) -> None:
    end = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise AssertionError(output.read_text(errors="replace"))


def _children(parent: int) -> list[int]:
    """Processes that the emulator started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[1]) == parent:
            found.append(int(folder.name))
    return found


def _times(pid: int) -> tuple[int, int, int, int]:
    """Ticks in user and system mode, of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12]), int(fields[13]), int(fields[14])
