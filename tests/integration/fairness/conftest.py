"""One deployment of the template for these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.steady_state import Deployment


@pytest.fixture(scope="session")
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    yield made
    made.close()
