"""DynamoDB Local, AWS's own build of the table's engine, where `make engine` has put it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

FOLDER = Path(__file__).parents[2] / ".engine"
JAR = FOLDER / "DynamoDBLocal.jar"
LAUNCHER = Path(__file__).parent / "Loopback.java"
START_SECONDS = 60.0
#: Requests that may be under way at once.
CONNECTIONS = 64
#: Tries to start on a free port: another program may take it in between.
TRIES = 3


def find_missing() -> str | None:
    """What it takes to run the engine and is not here, as one line; None when all is."""
    if not JAR.is_file():
        return "DynamoDB Local is not in .engine (make engine puts it there)"
    if shutil.which("javac") is None:
        return "DynamoDB Local needs a JDK (17 or newer)"
    return None


class Engine:
    """A server in a process of its own, in memory, on a free port of the loopback address; it runs until `close`."""

    def __init__(self) -> None:
        for left in reversed(range(TRIES)):
            self._port = _free_port()
            self._output = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the server runs
            self._process = subprocess.Popen(
                [
                    "java", "-Xmx512m", f"-Djava.library.path={FOLDER / 'DynamoDBLocal_lib'}",
                    "-cp", f"{JAR}{os.pathsep}{FOLDER / 'DynamoDBLocal_lib' / '*'}", str(LAUNCHER), "-inMemory",
                    "-sharedDb", "-disableTelemetry", "-port", str(self._port),
                ],
                cwd=FOLDER, env={"PATH": os.environ["PATH"], "DDB_LOCAL_TELEMETRY": "0"},
                stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT,
            )  # fmt: skip
            if self._answers():
                break
            said = self._said()
            self._end()
            if not left:
                raise RuntimeError(f"DynamoDB Local did not start: {said}")
        config = Config(proxies={}, max_pool_connections=CONNECTIONS, retries={"total_max_attempts": 1})
        #: It repeats nothing by itself.
        self.client: Any = boto3.client(
            "dynamodb", endpoint_url=f"http://127.0.0.1:{self._port}", region_name="us-east-1",
            aws_access_key_id="local", aws_secret_access_key="local", config=config,
        )  # fmt: skip

    def close(self) -> None:
        """Ends the server."""
        self.client.close()
        self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _answers(self) -> bool:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self._port}", timeout=5).close()
            except urllib.error.HTTPError as refusal:
                refusal.close()  # a bare GET is refused, by a server that is there
                return True
            except OSError:
                time.sleep(0.05)
        return False

    def _said(self) -> str:
        self._output.seek(0)
        return self._output.read().decode(errors="replace")[-2000:]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
