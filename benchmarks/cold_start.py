"""Cold starts of the built API function in Lambda's emulator, beside a bare handler, and what its imports take.

Needs what `make build-test` installs. The bare handler imports boto3 with one client and pydantic, from the same
layer, and asks the table for one item, as a request with a key does.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.build.account import Account, open_account
from tests.build.built import HOST_ARCHITECTURE, Build, build_project, find_environment, find_sam
from tests.build.emulator import PYTHON, find_emulator, started
from tests.template.document import functions

RUNS = 7
#: A cold start of the API may take so many times that of the bare handler.
GOAL = 1.3
BARE = """
import os
import boto3
from pydantic import BaseModel


class Thing(BaseModel):
    name: str
    count: int = 0


client = boto3.client("dynamodb")


def lambda_handler(event, context):
    key = {"pk": {"S": "KEY#x"}, "sk": {"S": "KEY"}}
    client.get_item(TableName=os.environ["TABLE_NAME"], Key=key)
    return Thing(name="x").model_dump()
"""
_READY = {
    "bare": "import app",
    "API": "import app; app.api().reader; from sift import environment; environment.client('dynamodb').meta",
}
_LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)")


@dataclass(frozen=True)
class Subject:
    """A function to start: artifact and layers, environment, and the event that it is invoked with."""

    roots: Sequence[Path]
    environment: Mapping[str, str]
    event: object


@dataclass(frozen=True)
class Start:
    """Milliseconds. `cold`: the first invocation with the start of the process; `processor`: what it took of it."""

    cold: float
    processor: float
    warm: float


def subjects(build: Build, account: Account, folder: Path) -> dict[str, Subject]:
    """The bare handler, the API function, and both with the bytecode taken out of their layers."""
    roots = build.roots(functions(build.template)["ApiFunction"])
    bare = folder / "bare"
    bare.mkdir()
    (bare / "app.py").write_text(BARE)
    environment, event = account.environment("ApiFunction"), account.event("ApiFunction")
    runtime = next(root for root in roots if root.parent.name == "RuntimeLayer")
    plain = {root: folder / f"plain-{number}" for number, root in enumerate(roots)}
    for root, copy in plain.items():
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return {
        "bare": Subject([bare, runtime], environment, event),
        "API": Subject(roots, environment, event),
        "bare, without bytecode": Subject([bare, plain[runtime]], environment, event),
        "API, without bytecode": Subject(list(plain.values()), environment, event),
    }


def measure(found: Mapping[str, Subject], emulator: Path, folder: Path, runs: int) -> dict[str, list[Start]]:
    """All starts, the functions taking turns."""
    starts: dict[str, list[Start]] = {name: [] for name in found}
    for number in range(runs):
        for name, subject in found.items():
            output = folder / f"output-{number}-{len(starts[name])}-{name.replace(', ', '-').replace(' ', '-')}"
            with started(subject.roots, "app.lambda_handler", subject.environment, emulator, output) as running:
                first = running.invoke(subject.event)
                warm = [running.invoke(subject.event).seconds for _ in range(5)]
            starts[name].append(Start(first.seconds * 1e3, first.processor_s * 1e3, statistics.median(warm) * 1e3))
    return starts


def median(starts: Sequence[Start]) -> Start:
    """Of each figure by itself."""
    rows = zip(*((start.cold, start.processor, start.warm) for start in starts), strict=True)
    return Start(*(statistics.median(row) for row in rows))


def ratio(starts: Mapping[str, Sequence[Start]]) -> float:
    """Processor time of the API's cold start over the bare handler's: the clock tells of others on the machine too."""
    return median(starts["API"]).processor / median(starts["bare"]).processor


def packages(found: Mapping[str, Subject], runs: int) -> Counter[str]:
    """Milliseconds by package of what the API imports over the bare handler, the least of some runs."""
    least: dict[str, dict[str, int]] = {name: {} for name in _READY}
    for _ in range(runs):
        for name, program in _READY.items():
            subject = found[name]
            environment = {
                **subject.environment, "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local",
                "AWS_SECRET_ACCESS_KEY": "local", "PYTHONPATH": os.pathsep.join(map(str, subject.roots)),
            }  # fmt: skip
            command = [str(PYTHON), "-S", "-B", "-X", "importtime", "-c", program]
            ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            for match in _LINE.finditer(ran.stderr):
                least[name][match[2]] = min(least[name].get(match[2], sys.maxsize), int(match[1]))
    total: Counter[str] = Counter()
    for module, microseconds in least["API"].items():
        if module not in least["bare"]:
            total[module.split(".")[0]] += microseconds
    return Counter({name: round(microseconds / 1000) for name, microseconds in total.items()})


def main() -> None:
    """Print the starts, their ratio, and the packages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, help="a build for this machine; made when it is not given")
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    emulator, sam, environment = find_emulator(), find_sam(), find_environment()
    if emulator is None or sam is None or environment is None or not PYTHON.exists():
        sys.exit("the SAM CLI, its emulator or awslambdaric is missing: make build-test installs them")
    with tempfile.TemporaryDirectory(prefix="sift-start-") as name, open_account() as account:
        folder = Path(name)
        project = folder / "project"
        project.mkdir()
        given = arguments.build
        build = Build(given.resolve()) if given else build_project(project, HOST_ARCHITECTURE, sam, environment)
        found = subjects(build, account, folder)
        starts = measure(found, emulator, folder, arguments.runs)
        print("| | cold, ms by the clock | cold, ms of the processor | warm, ms |\n|---|---:|---:|---:|")
        for name_, rows in starts.items():
            middle = median(rows)
            print(f"| {name_} | {middle.cold:.0f} | {middle.processor:.0f} | {middle.warm:.1f} |")
        met = "met" if ratio(starts) <= GOAL else "MISSED"
        print(f"\nAPI over bare: {ratio(starts):.2f} of the processor; goal of {GOAL}: {met}")
        print("\n| package, over the bare handler | ms of imports |\n|---|---:|")
        for package, milliseconds in packages(found, 5).most_common(8):
            print(f"| {package} | {milliseconds} |")


if __name__ == "__main__":
    main()
