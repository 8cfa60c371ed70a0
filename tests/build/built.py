"""What `sam build` made: where its parts lie, and for which processors they can be made."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from tests.template.document import load, target

ROOT = Path(__file__).parents[2]
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
