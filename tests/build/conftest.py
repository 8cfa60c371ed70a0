"""The project built by the SAM CLI as a user would, once for each processor type."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.build.built import HOST_ARCHITECTURE, ROOT, TEMPLATE_ARCHITECTURE, Build

PYTHON = "python3.13"
COPIED = ("template.yaml", "samconfig.toml", "functions", "layers")


def _clean_environment() -> dict[str, str]:
    """No credentials, no telemetry; SAM wants a region even for what stays on this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, "AWS_DEFAULT_REGION": "eu-west-1", "SAM_CLI_TELEMETRY": "0"}


def _answers(command: list[str], env: dict[str, str]) -> bool:
    return (
        shutil.which(command[0]) is not None
        and subprocess.run(command, env=env, capture_output=True, check=False).returncode == 0
    )


@pytest.fixture(scope="session")
def build_environment() -> dict[str, str]:
    """Environment in which `python3.13`, with pip, answers; skips where there is none."""
    env = _clean_environment()
    asks_pip = [PYTHON, "-m", "pip", "--version"]
    if _answers(asks_pip, env):
        return env
    if shutil.which("pyenv"):  # it shows a `python3.13` that works only for the version selected
        listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False)
        for version in sorted(listed.stdout.split(), reverse=True):
            if version.startswith("3.13.") and _answers(asks_pip, {**env, "PYENV_VERSION": version}):
                return {**env, "PYENV_VERSION": version}
    pytest.skip(f"{PYTHON} with pip is not installed")


@pytest.fixture(scope="session")
def sam(build_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the SAM CLI: `sam(*arguments, cwd=...)`; skips where there is none."""
    own = ROOT / ".venv-sam" / "bin" / "sam"
    command = str(own) if own.exists() else shutil.which("sam")
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
def build(sam: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Build]:
    """`build(architecture)`: build a copy of the project, once per session for each architecture."""
    built: dict[str, Build] = {}

    def make(architecture: str) -> Build:
        if architecture not in built:
            project = tmp_path_factory.mktemp(f"project-{architecture}")
            for name in COPIED:
                source = ROOT / name
                copy = shutil.copytree if source.is_dir() else shutil.copy
                copy(source, project / name)
            template = project / "template.yaml"
            template.write_text(template.read_text().replace(TEMPLATE_ARCHITECTURE, architecture))
            sam("build", cwd=project)
            built[architecture] = Build(project / ".aws-sam" / "build")
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
