"""The emulator of AWS on loopback, from an environment of its own, with Python functions as processes beside it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import boto3

REGION = "eu-west-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
PATIENCE_S = 120.0


class Emulator:
    """Runs from construction until `close`; also a context manager. `url` is the address of every service."""

    def __init__(self, program: Path, log: Path) -> None:
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._clients: dict[str, Any] = {}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
        environment = {
            **kept, "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(self._port), "MINISTACK_HOST": "localhost",
            "MINISTACK_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "LAMBDA_EXECUTOR": "local",
        }  # fmt: skip
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(program)], env=environment, stdout=output, stderr=output, cwd=log.parent
            )
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def client(self, service: str) -> Any:
        """A client of one of its services."""
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service, endpoint_url=self.url, region_name=REGION,
                aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            )  # fmt: skip
        return self._clients[service]

    def close(self) -> None:
        """Ends it, and with it the functions' processes."""
        for client in self._clients.values():
            client.close()
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=10):
                    return
            except urllib.error.HTTPError:
                return
            except OSError:
                assert self._process.poll() is None, "the emulator ended at its start, see its log"
                assert time.monotonic() < deadline, "the emulator does not answer"
                time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
