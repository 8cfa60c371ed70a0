"""Functions in containers, run by the SAM CLI, on a local stack that they reach at the address of Docker's bridge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sift_client.local import LocalStack
from sift_client.local.naming import REGION
from sift_client.local.sam_files import TEMPLATE_FILE, VARIABLES_FILE, write_sam_files
from tests.build.built import HOST_ARCHITECTURE, ROOT, Build
from tests.build.conftest import build, build_environment, sam

__all__ = ["build", "build_environment", "sam"]  # fixtures

MADE_UP_KEY = "sift_examplekey_examplesecret"


@pytest.fixture(scope="session")
def bridge() -> str:
    """Where containers find this machine: the gateway of Docker's network `bridge`."""
    if shutil.which("docker") is None:
        pytest.skip("there is no docker command")
    asked = subprocess.run(
        ["docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if asked.returncode:
        pytest.skip(f"docker does not answer: {asked.stderr.strip()}")
    return asked.stdout.strip()


@pytest.fixture(scope="session")
def stack(bridge: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    logs = tmp_path_factory.mktemp("logs")
    with LocalStack(ROOT / "template.yaml", site=True, log_dir=logs, host=bridge) as running:
        yield running


@pytest.fixture(scope="session")
def sam_local(
    stack: LocalStack, build: Callable[[str], Build], build_environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., subprocess.Popen[str]]:  # fmt: skip
    """`sam_local(command, *arguments)` starts `sam local` on the stack, with pipes for its output."""
    files = tmp_path_factory.mktemp("sam")
    write_sam_files(files, build(HOST_ARCHITECTURE).folder / "template.yaml", stack.variables())
    own = ROOT / ".venv-sam" / "bin" / "sam"
    flags = os.environ.get("SAM_LOCAL_FLAGS", "").split()

    def start(command: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                str(own if own.exists() else "sam"), "local", command, *arguments, *flags,
                "-t", str(files / TEMPLATE_FILE), "--env-vars", str(files / VARIABLES_FILE),
            ],
            env=build_environment | {"AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


@pytest.fixture
def invoke(
    sam_local: Callable[..., subprocess.Popen[str]], stack: LocalStack, tmp_path: Path
) -> Callable[[str, str], Any]:
    """`invoke(function, event)`: what the function answers to the file of events/ of that name."""

    def run(function: str, event: str) -> Any:
        text = (ROOT / "events" / f"{event}.json").read_text(encoding="utf-8")
        assert stack.key is not None
        filled = tmp_path / "event.json"
        filled.write_text(text.replace(MADE_UP_KEY, stack.key), encoding="utf-8")
        process = sam_local("invoke", function, "-e", str(filled))
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        return json.loads(output)

    return run
