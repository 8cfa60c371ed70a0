"""`sift demo` with the real local stack, template and functions, as `make run` starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sift_client.samples import SAMPLES

ROOT = Path(__file__).resolve().parents[3]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `sift` in an empty folder, in a session of its own; whatever still runs at the end is interrupted."""
    running: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SIFT_")}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "client"), str(ROOT / "layers" / "sift")])
        running.append(
            subprocess.Popen(
                [sys.executable, "-m", "sift_client.cli", *arguments],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        )
        return running[-1]

    yield run
    for process in running:
        if process.poll() is None:
            # The stack ends its functions itself; killing it at once would leave them behind.
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
        process.communicate()


def test_the_sample_batch_ends_as_it_must(start: Start, tmp_path: Path) -> None:
    process = start("demo")
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    assert f"{len(SAMPLES) - 1} done, 1 failed of {len(SAMPLES)}" in out
    (folder,) = (tmp_path / "out").iterdir()
    assert len(list(folder.iterdir())) == len(SAMPLES) - 1
    assert "Стояли на льду" in next(folder.glob("0014-*")).read_text(encoding="utf-8")
    assert not (tmp_path / ".sift" / "local.json").exists()


def test_ctrl_c_in_the_middle(start: Start, tmp_path: Path) -> None:
    process = start("demo")
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        # The first to end may be the one that fails, which leaves no file.
        if line.startswith("[") and list((tmp_path / "out").glob("*/*")):
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    err = "".join(lines) + err
    assert process.returncode == 130, err
    (folder,) = (tmp_path / "out").iterdir()
    assert f"sift wait {folder.name}" in err
    assert "Traceback" not in err
    assert (tmp_path / ".sift" / "state.json.gz").is_file()
    assert not (tmp_path / ".sift" / "local.json").exists()
    assert not list(folder.glob("*.partial"))

    stack = start("local", "--site", "--port", "0")
    assert stack.stdout is not None
    for line in stack.stdout:
        if line.startswith("logs"):
            break
    waiting = start("wait", folder.name)
    out, err = waiting.communicate()
    assert f"{len(SAMPLES) - 1} done, 1 failed of {len(SAMPLES)}" in out, out + err
    assert len(list(folder.iterdir())) == len(SAMPLES) - 1
    stack.send_signal(signal.SIGINT)
    assert stack.wait() == 0
    assert not (tmp_path / ".sift" / "local.json").exists()
