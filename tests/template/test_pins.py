"""Requirement files: every package at one version, with hashes, and no address of where it comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.template.document import ROOT

LAYERS = sorted(ROOT.glob("layers/*/requirements.txt"))
DEV = ROOT / "requirements-dev.txt"
#: Environments of their own, whose versions need not be ours.
APART = [
    ROOT / f"requirements-{name}.txt" for name in ("sam", "checkov", "emulator", "litellm", "lambda", "throughput")
]
ALL = [*LAYERS, DEV, *APART]

PIN = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[^ ;]+)(?P<marker> ; .+?)? \\$"
    r"(?P<hashes>(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+)$",
    re.MULTILINE,
)
ADDRESS = re.compile(r"://|--(?:extra-)?index|--find-links|@ ", re.IGNORECASE)


def _pins(path: Path) -> list[tuple[str, str, str]]:
    return [(m["name"], m["version"], m["marker"] or "") for m in PIN.finditer(path.read_text())]


def _asked_for(path: Path) -> set[str]:
    """Packages that a `.in` file names."""
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    names = (re.split(r"[\[<>=~!; ]", line)[0] for line in lines if line and not line.startswith("-"))
    return {name.lower().replace("_", "-").replace(".", "-") for name in names}


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_line_is_a_pin_with_hashes(path: Path) -> None:
    rest = PIN.sub("", path.read_text())
    assert [line for line in rest.splitlines() if line and not line.lstrip().startswith("#")] == []
    assert _pins(path)


@pytest.mark.parametrize("path", [*ALL, *(path.with_suffix(".in") for path in ALL)], ids=lambda path: path.name)
def test_no_file_says_where_packages_come_from(path: Path) -> None:
    assert ADDRESS.findall(path.read_text()) == []


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_pins_cover_what_is_asked_for(path: Path) -> None:
    pinned = {name for name, _, _ in _pins(path)}
    if path == DEV:
        pinned |= {name for layer in LAYERS for name, _, _ in _pins(layer)}
    assert _asked_for(path.with_suffix(".in")) <= pinned


def test_layers_and_development_agree_on_versions() -> None:
    versions: dict[str, set[str]] = {}
    for path in [*LAYERS, DEV]:
        for name, version, _ in _pins(path):
            versions.setdefault(name, set()).add(version)
    layered = {name for path in LAYERS for name, _, _ in _pins(path)}
    # Outside the layers, markers may give a package one version for each range of Pythons.
    assert {name: found for name, found in versions.items() if name in layered and len(found) > 1} == {}


def test_development_repeats_no_pin_of_a_layer() -> None:
    # A pin that a layer makes for some machines only (with a marker) may be needed on all of them here.
    everywhere = {name for path in LAYERS for name, _, marker in _pins(path) if not marker}
    assert everywhere & {name for name, _, _ in _pins(DEV)} == set()
