"""A fake API, a client of it, and the environment that commands find it by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sift_client.client import Sift
from tests.unit.client.fake_api import KEY, FakeApi


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    yield fake
    fake.close()


@pytest.fixture
def sleeps() -> list[float]:
    return []


@pytest.fixture
def client(api: FakeApi, sleeps: list[float]) -> Iterator[Sift]:
    """A client that notes its pauses in `sleeps` in place of making them."""
    with Sift(api.url, KEY, sleep=sleeps.append) as made:
        yield made


@pytest.fixture
def folder(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, with the fake API in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIFT_URL", api.url)
    monkeypatch.setenv("SIFT_KEY", KEY)
    return tmp_path
