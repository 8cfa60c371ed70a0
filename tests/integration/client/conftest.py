"""The Python client and the command, set to a local stack that a test module starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sift_client.client import Sift
from sift_client.local import LocalStack


@pytest.fixture
def client(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sift]:
    assert stack.key is not None
    monkeypatch.setenv("SIFT_URL", stack.url)
    monkeypatch.setenv("SIFT_KEY", stack.key)
    with Sift(stack.url, stack.key) as opened:
        yield opened
