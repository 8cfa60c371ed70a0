"""A skip fails a CI run, and only a CI run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RULES = Path(__file__).parents[1] / "conftest.py"

SUITES = {
    "passes": "def test_it(): pass",
    "skips": "import pytest\ndef test_it(): pytest.skip('no such thing here')",
    "skips_module": "import pytest\npytest.skip('no such thing here', allow_module_level=True)",
    "expected_failure": "import pytest\n@pytest.mark.xfail(strict=True)\ndef test_it(): assert False",
    "fails": "def test_it(): assert False",
}


def _run(folder: Path, suite: str, ci: str, *options: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(RULES, folder / "conftest.py")
    # A passing test beside it, so that "no test ran" is not what fails the run.
    (folder / "test_suite.py").write_text(SUITES[suite])
    (folder / "test_other.py").write_text(SUITES["passes"])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "."]
    env = {**os.environ, "CI": ci}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["plain", "xdist"])
@pytest.mark.parametrize("suite", ["skips", "skips_module"])
def test_ci_fails_on_a_skip_and_names_it(tmp_path: Path, suite: str, options: tuple[str, ...]) -> None:
    ran = _run(tmp_path, suite, "true", *options)
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout
    assert "no such thing here" in ran.stdout.split("skips that CI does not expect")[1]


@pytest.mark.parametrize("suite", ["passes", "expected_failure"])
def test_ci_takes_what_is_not_skipped(tmp_path: Path, suite: str) -> None:
    ran = _run(tmp_path, suite, "true")
    assert ran.returncode == pytest.ExitCode.OK, ran.stdout


def test_a_developer_may_skip(tmp_path: Path) -> None:
    assert _run(tmp_path, "skips", "").returncode == pytest.ExitCode.OK


def test_failures_still_fail(tmp_path: Path) -> None:
    assert _run(tmp_path, "fails", "true").returncode == pytest.ExitCode.TESTS_FAILED
