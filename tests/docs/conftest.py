"""A fake API for the examples of the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.client.fake_api import FakeApi


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    yield fake
    fake.close()
