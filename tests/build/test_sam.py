"""The SAM CLI accepts and builds the project, and each built function stands on its own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.build.built import HOST_ARCHITECTURE, ROOT, TEMPLATE_ARCHITECTURE, Build
from tests.template.document import functions, variables

pytestmark = pytest.mark.needs_sam

ARTIFACT = Path(__file__).with_name("artifact.py")
FUNCTIONS = (
    "ApiFunction", "AssembleFunction", "FetchFunction", "FetchNowFunction", "InferenceFunction", "NotifyFunction",
    "ScheduleFunction", "SweepFunction",
)  # fmt: skip
# Unzipped, layers included. Lambda's own limit is 250 MB; below it, each MB is paid for in cold starts.
BUDGET_MB = {
    "ApiFunction": 60, "AssembleFunction": 60, "FetchFunction": 200, "FetchNowFunction": 200, "InferenceFunction": 200,
    "NotifyFunction": 200, "ScheduleFunction": 60, "SweepFunction": 60,
}  # fmt: skip
ELF_MACHINE = {"x86_64": 0x3E, "arm64": 0xB7}  # e_machine, 2 bytes at offset 18 of an ELF file


def _megabytes(folder: Path) -> float:
    # By file size, as Lambda counts, not by blocks of this machine's disk.
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1_000_000


def test_template_is_valid(sam: Callable[..., Any]) -> None:
    assert "is a valid SAM Template" in sam("validate", "--lint", cwd=ROOT).stdout


def test_native_code_is_for_the_architecture_of_the_template(build: Callable[[str], Build]) -> None:
    libraries = list(build(TEMPLATE_ARCHITECTURE).folder.rglob("*.so*"))
    assert libraries
    for library in libraries:
        header = library.read_bytes()[:20]
        assert header[:4] == b"\x7fELF", library
        assert int.from_bytes(header[18:20], "little") == ELF_MACHINE[TEMPLATE_ARCHITECTURE], library


def test_the_layer_describes_the_services_that_sift_calls(build: Callable[[str], Build]) -> None:
    data = build(TEMPLATE_ARCHITECTURE).folder / "RuntimeLayer" / "python" / "botocore" / "data"
    described = {path.name for path in data.iterdir() if path.is_dir()}
    sources = [path.read_text() for path in (ROOT / "layers" / "sift" / "sift" / "bootstrap").glob("*.py")]
    called = set(re.findall(r'LazyClient\("([a-z0-9-]+)"\)', "".join(sources)))
    assert called >= {"dynamodb", "sqs", "s3", "events"}
    assert called <= described
    assert len(described) < 20


def test_our_layer_is_found_where_lambda_looks(build: Callable[[str], Build]) -> None:
    layer = build(TEMPLATE_ARCHITECTURE).folder / "SiftLayer"
    built = {path.relative_to(layer / "python").as_posix() for path in layer.rglob("*.py")}
    source = {path.relative_to(ROOT / "layers/sift").as_posix() for path in ROOT.glob("layers/sift/**/*.py")}
    assert built == source


@pytest.mark.parametrize("architecture", sorted(ELF_MACHINE))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_small_enough(
    name: str, architecture: str, build: Callable[[str], Build], capsys: pytest.CaptureFixture[str]
) -> None:
    made = build(architecture)
    parts = {root: _megabytes(root) for root in made.roots(functions(made.template)[name])}
    shown = ", ".join(f"{root.relative_to(made.folder).parts[0]} {size:.1f}" for root, size in parts.items())
    with capsys.disabled():
        print(f"\n{name}, {architecture}: {sum(parts.values()):.1f} of {BUDGET_MB[name]} MB unzipped ({shown})")
    assert sum(parts.values()) <= BUDGET_MB[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_imports_from_its_artifact_alone(
    name: str, bare_python: list[str], build: Callable[[str], Build], tmp_path: Path
) -> None:
    made = build(HOST_ARCHITECTURE)
    function = functions(made.template)[name]
    # What asks servers of others needs a layer which only some functions have.
    outward = "content,connections.py,gateway.py,completions.py,upstream.py"
    without = "" if {"Ref": "ContentLayer"} in function["Layers"] else outward
    ran = subprocess.run(
        [*bare_python, str(ARTIFACT), function["Handler"], without, *map(str, made.roots(function))],
        cwd=tmp_path,
        env={**made.environment(variables(function)), "AWS_REGION": "eu-west-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr
