"""One Lambda execution environment as a child process: started, given one event at a time, killed at its timeout."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sift_client.local.blueprint import FunctionSpec
from sift_client.local.naming import REGION
from sift_client.local.runtime import Channel

INIT_SECONDS = 10.0  # Lambda: an init phase longer than this runs on in the first invocation's time


class EnvironmentDied(Exception):
    """The environment's process ended; `error` is what Lambda would answer."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["errorMessage"])
        self.error = error


def process_variables(spec: FunctionSpec, aws_url: str) -> dict[str, str]:
    """The whole environment of a function: what the template declares and what Lambda itself sets."""
    return {
        **spec.environment,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "PYTHONUNBUFFERED": "1",
        "_HANDLER": spec.handler,
        "LAMBDA_TASK_ROOT": str(spec.code),
        "AWS_LAMBDA_FUNCTION_NAME": spec.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(spec.memory),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{spec.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": uuid.uuid4().hex,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_ENDPOINT_URL": aws_url,
        # No file or metadata service of this machine may lead a function to a real account.
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": urlsplit(aws_url).hostname or "",
    }


class Environment:
    """A running process that holds one imported handler. Not for use by two threads at once."""

    def __init__(self, spec: FunctionSpec, variables: dict[str, str], log: Path) -> None:
        self.spec = spec
        ours, theirs = socket.socketpair()
        with theirs, log.open("ab") as output:
            # In a session of its own: Ctrl-C in the terminal is for the stack, which drains.
            self._process = subprocess.Popen(  # noqa: S603 - a script of our own
                [sys.executable, "-P", "-s", str(Path(__file__).with_name("runtime.py")), str(theirs.fileno())],
                env=variables, cwd=spec.code, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        self._socket = ours
        self._channel = Channel(ours)
        self._ready = False

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def invoke(self, event: str, request_id: str) -> dict[str, Any]:
        """Runs one event (JSON text): `{"payload": text}` or `{"error": {...}}`, as the handler ended.

        Raises EnvironmentDied when the process ended or was killed at its timeout; the environment is then closed.
        """
        budget = float(self.spec.timeout)
        if not self._ready:
            started = time.monotonic()
            self._exchange({"path": [str(self.spec.code), *map(str, self.spec.layers)]})
            answer = self._wait(INIT_SECONDS + budget, request_id)
            if "failed" in answer:
                self.close()
                raise EnvironmentDied({**answer["failed"], "requestId": request_id})
            self._ready = True
            budget -= max(0.0, time.monotonic() - started - INIT_SECONDS)
        self._exchange(
            {"event": event, "request_id": request_id, "arn": self.spec.arn, "deadline": time.time() + budget}
        )
        return self._wait(budget, request_id)

    def kill(self) -> None:
        """Kills the process and whatever it started; the invocation that runs, if any, ends as a death."""
        # A pid that has been waited for may belong to someone else by now.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kills the process and lets go of everything it held."""
        self.kill()
        self._process.wait()
        self._socket.close()

    def _exchange(self, message: dict[str, Any]) -> None:
        self._socket.settimeout(30)
        # A dead peer is found, and told apart, by the read that follows.
        with contextlib.suppress(OSError):
            self._channel.send(message)

    def _wait(self, seconds: float, request_id: str) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        answer = self._channel.receive(deadline)
        if answer is not None:
            return answer
        timed_out = time.monotonic() >= deadline and self._process.poll() is None
        if not timed_out:
            # Its end of the socket closes a moment before the process has its exit status.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
        status = self._process.poll()
        self.close()
        if timed_out:
            limit = self.spec.timeout
            error = {
                "errorType": "Sandbox.Timedout",
                "errorMessage": f"RequestId: {request_id} Error: Task timed out after {limit}.00 seconds",
            }
        else:
            how = f"signal: {signal.Signals(-status).name}" if status and status < 0 else f"exit status {status}"
            error = {
                "errorType": "Runtime.ExitError",
                "errorMessage": f"RequestId: {request_id} Error: Runtime exited with error: {how}",
            }
        raise EnvironmentDied(error)
