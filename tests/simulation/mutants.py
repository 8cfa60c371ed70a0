"""Breaks the code on purpose, one way at a time, and shows what notices it.

`python -m tests.simulation.mutants [WORD]`
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.simulation.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "layers" / "sift"
SEEDS, AWS_SEEDS = 600, 40
TESTS = ("tests/simulation/test_found.py", "tests/contract", "tests/unit/services")

_CAUGHT = re.compile(r"^seed (\d+): ([^:]+): (.*)", re.MULTILINE)
_FAILED = re.compile(r"^FAILED (\S+)", re.MULTILINE)


def mutate(mutation: Mutation, home: Path) -> None:
    """A copy of the code with the edit in it. Raises ValueError when the edit does not fit exactly once."""
    shutil.copytree(SOURCE / "sift", home / "sift", ignore=shutil.ignore_patterns("__pycache__"))
    path = home / "sift" / mutation.file
    text = path.read_text()
    for before, after in mutation.edits:
        if text.count(before) != 1:
            raise ValueError(f"{mutation.name}: found {text.count(before)} times in {mutation.file}: {before!r}")
        text = text.replace(before, after)
    path.write_text(text)


def catch(mutation: Mutation) -> str | None:
    """What notices the mutation: an invariant of the simulator, or a test."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        home = Path(name)
        mutate(mutation, home)
        environment = {**os.environ, "PYTHONPATH": f"{home}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}

        def python(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )

        where = python("-c", "import sift; print(sift.__file__)").stdout
        if not where.startswith(str(home)):
            raise RuntimeError(f"the mutant would not be run, but {where}")
        seeds = ["--seeds", str(AWS_SEEDS), "--aws"] if mutation.aws else ["--seeds", str(SEEDS)]
        run = python("-m", "tests.simulation", *seeds, "--lines", "0")
        if (found := _CAUGHT.search(run.stdout)) and found[2] != "unexpected":
            return f"invariant «{found[2]}», seed {found[1]}: {found[3][:90]}"
        if found is None and run.returncode:
            raise RuntimeError(f"{mutation.name}: the simulator itself failed:\n{run.stderr[-2000:]}")
        options = ["-x", "-q", "-p", "no:cacheprovider", "-o", f"pythonpath={home} . client"]
        run = python("-m", "pytest", *options, *TESTS)
        failed = _FAILED.search(run.stdout)
        return f"test {failed[1]}" if failed and run.returncode == 1 else None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only mutants with this in their name")
    parser.add_argument("--jobs", type=int, default=2, help="at once (default: %(default)s)")
    given = parser.parse_args(arguments)
    chosen = [mutation for mutation in MUTATIONS if given.word in mutation.name]
    survivors = []

    def timed(mutation: Mutation) -> tuple[Mutation, str | None, float]:
        began = time.monotonic()
        return mutation, catch(mutation), time.monotonic() - began

    with ThreadPoolExecutor(given.jobs) as pool:
        for mutation, caught, seconds in pool.map(timed, chosen):
            print(f"{mutation.name:<50} {caught or 'SURVIVES'}  ({seconds:.0f} s)", flush=True)
            if caught is None:
                survivors.append(mutation.name)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants were caught")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
