"""The check of built functions notices what is missing from an artifact."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ARTIFACT = Path(__file__).with_name("artifact.py")
SOUND = "from sift import work\ndef lambda_handler(event, context): return work.do()\n"


def _check(folder: Path, app: str, work: str, *, without: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "task").mkdir()
    (folder / "task" / "app.py").write_text(app)
    (folder / "layer" / "sift").mkdir(parents=True, exist_ok=True)
    (folder / "layer" / "sift" / "__init__.py").write_text("")
    (folder / "layer" / "sift" / "work.py").write_text(work)
    roots = [str(folder / "task"), str(folder / "layer")]
    command = [sys.executable, "-I", "-S", str(ARTIFACT), "app.lambda_handler", without, *roots]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("app", "work", "complaint"),
    [
        # pytest is installed here, and not in the artifact
        pytest.param("import pytest\n" + SOUND, "", "No module named 'pytest'", id="import"),
        pytest.param(SOUND, "def do():\n    import pytest\n", "pytest in ", id="lazy import"),
        pytest.param(SOUND, "def do():\n    from pytest.x import y\n", "pytest in ", id="lazy from-import"),
        pytest.param("import sift\nlambda_handler = 1\n", "", "is not a function", id="not a function"),
        pytest.param("import sift\n", "", "lambda_handler", id="no handler"),
    ],
)
def test_it_notices(tmp_path: Path, app: str, work: str, complaint: str) -> None:
    ran = _check(tmp_path, app, work)
    assert ran.returncode != 0
    assert complaint in ran.stderr


def test_it_takes_what_stands_alone(tmp_path: Path) -> None:
    typing_only = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pytest\n"
    work = "import json\n" + typing_only + "def do(): pass\n"
    assert _check(tmp_path, SOUND, work).returncode == 0


def test_it_leaves_out_what_the_function_does_without(tmp_path: Path) -> None:
    content = tmp_path / "layer" / "sift" / "content"
    content.mkdir(parents=True)
    (content / "html.py").write_text("import pytest\n")
    assert _check(tmp_path, SOUND, "def do(): pass\n", without="content").returncode == 0


@pytest.mark.parametrize(("branch", "code"), [(">= (3, 99)", 0), (">= (3, 0)", 1)])
def test_only_the_branch_of_this_python_counts(tmp_path: Path, branch: str, code: int) -> None:
    branches = ("    def do(): import nowhere", "else:", "    def do(): import json")
    work = "\n".join(("import sys", f"if sys.version_info {branch}:", *branches, ""))
    assert _check(tmp_path, SOUND, work).returncode == code
