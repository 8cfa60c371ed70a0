"""What holds for every test: no unexpected skip in CI, Ctrl-C is heard everywhere, garbage is looked for less often."""

from __future__ import annotations

import gc
import os
import re
import signal

import pytest

# What a test's id starts with (a regular expression), and why it may be skipped in CI.
EXPECTED_SKIPS: dict[str, str] = {
    r"tests/contract/test_\w+\.py::test_\w+\[engine[]-]": "DynamoDB Local may not be committed; `make engine` gets it",
    r"tests/emulator/": "`make e2e` installs the emulator",
    r"tests/integration/api/test_litellm\.py": "LiteLLM takes 600 MB; `make litellm` gets it",
    r"tests/e2e/": "tests/integration/client/test_end_to_end.py runs them against a local stack",
}

UNEXPECTED = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[UNEXPECTED] = {}
    # A shell starts what it runs in the background with Ctrl-C ignored, and so would be every process of a test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("CI") == "true":
        config.pluginmanager.register(SkipWatch(config.stash[UNEXPECTED]))


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking through it for garbage again and again took an eighth of the time.

    It is not frozen: what is tested takes a process with anything frozen for a fork server's child.
    """
    gc.collect()
    gc.set_threshold(10_000, 20, 20)


class SkipWatch:
    """Notes every skip that is not expected and fails the session for it."""

    def __init__(self, unexpected: dict[str, str]) -> None:
        self._unexpected = unexpected

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        if not any(re.match(pattern, report.nodeid) for pattern in EXPECTED_SKIPS):
            reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._unexpected[report.nodeid] = reason

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._unexpected and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._unexpected:
            terminalreporter.section("skips that CI does not expect", red=True)
            for test, reason in self._unexpected.items():
                terminalreporter.line(f"{test}: {reason}")
