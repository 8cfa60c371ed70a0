"""A world in memory for each test, on its own or with a receiver of webhooks."""

from __future__ import annotations

import pytest

from tests.unit.services.hooked import Hooked
from tests.unit.services.world import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def hooked() -> Hooked:
    return Hooked()
