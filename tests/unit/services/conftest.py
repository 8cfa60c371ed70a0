"""A world in memory for each test."""

from __future__ import annotations

import pytest

from tests.unit.services.world import World


@pytest.fixture
def world() -> World:
    return World()
