"""One stack for the tests that change nothing about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.drill.stage import Stage, open_stage

JOBS_TOTAL = 5
#: So many requests of a race are in the function at once, each in a process of its own; the others try again.
API_PROCESSES = 8


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    code = "      CodeUri: functions/api/\n"
    edits = {code: f"{code}      ReservedConcurrentExecutions: {API_PROCESSES}\n"}
    parameters = {"JobsTotal": str(JOBS_TOTAL), "JobsPerCaller": "1"}
    with open_stage(tmp_path_factory.mktemp("stage"), edits, parameters) as opened:
        yield opened
