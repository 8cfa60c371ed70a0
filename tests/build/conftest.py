"""The project built by the SAM CLI as a user would, once for each processor type."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.build.built import HOST_ARCHITECTURE, PYTHON, Build, build_project, find_environment, find_sam


@pytest.fixture(scope="session")
def build_environment() -> dict[str, str]:
    """Environment in which `python3.13`, with pip, answers; skips where there is none."""
    env = find_environment()
    if env is None:
        pytest.skip(f"{PYTHON} with pip is not installed")
    return env


@pytest.fixture(scope="session")
def sam(build_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the SAM CLI: `sam(*arguments, cwd=...)`; skips where there is none."""
    command = find_sam()
    if command is None:
        pytest.skip("the SAM CLI is not installed; make build-test installs it")

    def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            [command, *arguments], cwd=cwd, env=build_environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran

    return run


@pytest.fixture(scope="session")
def build(
    sam: Callable[..., Any], build_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Build]:
    """`build(architecture)`: build a copy of the project, once per session for each architecture."""
    command = find_sam()
    assert command is not None  # or the fixture `sam` has skipped
    built: dict[str, Build] = {}

    def make(architecture: str) -> Build:
        if architecture not in built:
            project = tmp_path_factory.mktemp(f"project-{architecture}")
            built[architecture] = build_project(project, architecture, command, build_environment)
        return built[architecture]

    return make


@pytest.fixture(scope="session")
def bare_python(build_environment: dict[str, str]) -> list[str]:
    """Command of the Python that Lambda runs, without site packages; skips where it cannot load the build."""
    if not sys.platform.startswith("linux") or not HOST_ARCHITECTURE:
        pytest.skip(f"Lambda's wheels do not load on {sys.platform} {platform.machine()}")
    where = subprocess.run(
        [PYTHON, "-c", "import sys; print(sys.executable)"],
        env=build_environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return [where.stdout.strip(), "-I", "-S"]
