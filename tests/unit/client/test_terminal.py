"""The `sift` command as its own process: files as they arrive, Ctrl-C, terminals."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.client.fake_api import FakeApi

A, B = "https://site.example/a.html", "https://site.example/b.html"
CLIENT = Path(__file__).resolve().parents[3] / "client"


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a command; what still runs at the end of the test is killed."""
    running: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str, **options: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "sift_client.cli", *arguments]
        environment = os.environ | {"PYTHONPATH": str(CLIENT), "TERM": "xterm", "COLUMNS": "160"}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        running.append(subprocess.Popen(command, env=environment, **streams))  # type: ignore[call-overload]
        return running[-1]

    yield run
    for process in running:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(1500):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("it did not come about")


def test_content_is_there_while_the_job_runs(
    api: FakeApi, folder: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start("run", A, B)
    wait_until(lambda: bool(api.slots))
    api.finish(0, "early")
    wait_until((folder / "out/job_1/0000-a.md").is_file)
    assert process.poll() is None
    api.finish(1, "late")
    out, _ = process.communicate()
    assert process.returncode == 0
    assert b"2 files in out/job_1/" in out


@pytest.mark.parametrize("command", [["run", A, B], ["wait", "job_1"], ["status", "job_1", "--wait"]])
def test_ctrl_c_says_how_to_go_on(
    api: FakeApi, start: Callable[..., subprocess.Popen[bytes]], command: list[str]
) -> None:
    if command[0] != "run":
        api.make_job([{"url": A}])
    process = start(*command)
    wait_until(lambda: any("wait=" in request for request in api.requests))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert b"sift wait job_1" in err
    assert b"Traceback" not in err


def test_ctrl_c_on_submit_is_no_traceback(api: FakeApi, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    api.fail_next("/v1/jobs$", 503, {"code": "jobs_busy"}, headers={"retry-after": "20"}, times=9)
    process = start("run", A)
    wait_until(lambda: bool(api.requests))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_a_terminal_gets_a_bar_and_a_drawn_table(api: FakeApi, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    api.on_look = lambda: (api.finish(0), api.fail(1))  # type: ignore[func-returns-value]
    screen, terminal = pty.openpty()
    process = start("run", A, B, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = b""
    # At the end of the last writer a pseudo-terminal answers with an error, not with an end of file.
    with contextlib.suppress(OSError):
        while part := os.read(screen, 65536):
            shown += part
    os.close(screen)
    assert process.wait() == 3
    text = shown.decode()
    assert "2/2" in text
    assert "\x1b[" in text
    assert "━" in text
    assert "media type" in text
    assert "[1/2]" not in text


def test_a_reader_that_has_enough_is_no_traceback(api: FakeApi, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    api.make_job([{"url": f"https://site.example/{number}"} for number in range(5000)])
    api.page_size = 5000
    process = start("results", "job_1")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate()
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err
