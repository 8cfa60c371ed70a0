"""What `sam build` made: where its parts lie, and for which processors they can be made."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.template.document import load, target

ROOT = Path(__file__).parents[2]
PYTHON = "python3.13"
COPIED = ("template.yaml", "samconfig.toml", "functions", "layers")
TEMPLATE_ARCHITECTURE = "arm64"
# SAM's word for the processor of this machine; "" for one that Lambda does not have.
HOST_ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), "")


class Build:
    """The folder of one build, with the template that SAM wrote into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.template = load(folder / "template.yaml")

    def roots(self, function: dict[str, Any]) -> list[Path]:
        """The function's artifact, then its layers' Python folders, the last layer first."""
        layers = [self.folder / layer["Ref"] / "python" for layer in reversed(function["Layers"])]
        return [self.folder / function["CodeUri"], *layers]

    def environment(self, variables: dict[str, Any]) -> dict[str, str]:
        """The template's variables with the parameters' defaults, and a stand-in for what only AWS knows."""
        defaults = {name: str(entry.get("Default")) for name, entry in self.template["Parameters"].items()}
        return {
            name: value if isinstance(value, str) else defaults.get(target(value), "placeholder")
            for name, value in variables.items()
        }


def find_environment() -> dict[str, str] | None:
    """Environment in which `python3.13`, with pip, answers: no credentials, no telemetry; None where there is none.

    SAM wants a region even for what stays on this machine.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env = {**kept, "AWS_DEFAULT_REGION": "eu-west-1", "SAM_CLI_TELEMETRY": "0"}
    asks_pip = [PYTHON, "-m", "pip", "--version"]
    if _answers(asks_pip, env):
        return env
    if shutil.which("pyenv"):  # it shows a `python3.13` that works only for the version selected
        listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False)
        for version in sorted(listed.stdout.split(), reverse=True):
            if version.startswith("3.13.") and _answers(asks_pip, {**env, "PYENV_VERSION": version}):
                return {**env, "PYENV_VERSION": version}
    return None


def _answers(command: list[str], env: Mapping[str, str]) -> bool:
    return (
        shutil.which(command[0]) is not None
        and subprocess.run(command, env=env, capture_output=True, check=False).returncode == 0
    )


def find_sam() -> str | None:
    """The command of the SAM CLI: the pinned one, else one on the path."""
    own = ROOT / ".venv-sam" / "bin" / "sam"
    return str(own) if own.exists() else shutil.which("sam")


def build_project(project: Path, architecture: str, sam: str, env: Mapping[str, str]) -> Build:
    """A build of a copy of the project in that folder, as a user would make it. Raises AssertionError with what SAM
    says when it fails."""
    without = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, project / name, ignore=without)
        else:
            shutil.copy(source, project / name)
    template = project / "template.yaml"
    template.write_text(template.read_text().replace(TEMPLATE_ARCHITECTURE, architecture))
    ran = subprocess.run([sam, "build"], cwd=project, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return Build(project / ".aws-sam" / "build")
