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
TESTS = ("tests/simulation/test_found.py", "tests/contract/test_store_submit.py", "tests/contract/test_store_course.py",
         "tests/contract/test_store_lists.py", "tests/contract/test_store_keys.py",
         "tests/contract/test_store_targets.py", "tests/contract/test_store_webhooks.py",
         "tests/contract/test_store_hosts.py", "tests/contract/test_other_ports.py", "tests/unit/domain",
         "tests/unit/services")  # fmt: skip

_BROKEN = re.compile(r"^seed (\d+): ([^:]+): (.*)", re.MULTILINE)
_FAILED = re.compile(r"^FAILED (\S+)(.*)", re.MULTILINE)


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


class Bench:
    """A folder with the code, mutated or not, and what can be run on it."""

    def __init__(self, home: Path, mutation: Mutation) -> None:
        mutate(mutation, home)
        self._mutation = mutation
        self._home = home
        where = self._python("-c", "import sift; print(sift.__file__)").stdout
        if not where.startswith(str(home)):
            raise RuntimeError(f"the mutant would not be run, but {where}")

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": f"{self._home}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )

    def simulate(self) -> str | None:
        """The invariant that breaks, and how."""
        seeds = ["--seeds", str(AWS_SEEDS), "--aws"] if self._mutation.aws else ["--seeds", str(SEEDS)]
        run = self._python("-m", "tests.simulation", *seeds, "--lines", "0")
        found = _BROKEN.search(run.stdout)
        if found is None and run.returncode:
            raise RuntimeError(f"{self._mutation.name}: the simulator itself failed:\n{run.stderr[-2000:]}")
        if found is None or found[2] == "unexpected":
            return None
        return f"invariant «{found[2]}», seed {found[1]}: {found[3][:90]}"

    def test(self) -> str | None:
        """The test that fails. One that is only too slow does not count, nor does one that can't be collected."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "-o", f"pythonpath={self._home} . client"]
        run = self._python("-m", "pytest", *options, *TESTS)
        failed = _FAILED.search(run.stdout)
        return f"test {failed[1]}" if failed and run.returncode == 1 and "Timeout" not in failed[2] else None


def catch(mutation: Mutation) -> str | None:
    """What notices the mutation: an invariant of the simulator, or a test."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        bench = Bench(Path(name), mutation)
        return bench.simulate() or bench.test()


def check_unchanged() -> None:
    """What fails without a change says nothing about any."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        bench = Bench(Path(name), Mutation("nothing", "__init__.py", ()))
        if failing := bench.simulate() or bench.test():
            raise SystemExit(f"the code as it is does not pass: {failing}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only mutants whose name this pattern finds")
    parser.add_argument("--jobs", type=int, default=2, help="at once (default: %(default)s)")
    given = parser.parse_args(arguments)
    chosen = [mutation for mutation in MUTATIONS if re.search(given.word, mutation.name)]
    check_unchanged()
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
