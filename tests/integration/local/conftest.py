"""Small stacks for these tests, closed at their end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sift_client.local import LocalStack
from tests.integration.local.project import Project, Start


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def start(project: Project, tmp_path: Path) -> Iterator[Start]:
    """Starts the project's stack; all are closed at the end."""
    stacks: list[LocalStack] = []

    def begin(**settings: Any) -> LocalStack:
        stacks.append(LocalStack(project.write(), log_dir=tmp_path / "logs", **settings))
        return stacks[-1]

    yield begin
    for stack in stacks:
        stack.close()
