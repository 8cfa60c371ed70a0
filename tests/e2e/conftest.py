"""The service under test, named by the environment; without it the whole suite is skipped.

SIFT_URL    where the service answers
SIFT_KEY    a key of scope fetch, for a caller that nobody uses meanwhile
SIFT_SITE   the sample site, at an address that the service may fetch (its GuardAllow)
SIFT_SECOND_KEY  another caller of scope fetch, with the limits jobs_per_caller=1 and targets_per_job=2
SIFT_ADMIN_KEY   a key of scope admin alone
SIFT_MODEL       a model that the deployment's gateway serves at /v1/chat/completions; SIFT_KEY needs inference then
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from tests.e2e.service import Service

NEEDED = ("SIFT_URL", "SIFT_KEY", "SIFT_SITE")


def _open(key: str | None) -> Iterator[Service]:
    opened = Service(os.environ["SIFT_URL"], key)
    yield opened
    try:
        opened.tidy()
    finally:
        opened.close()


def _optional(name: str) -> str:
    found = os.environ.get(name)
    if not found:
        pytest.skip(f"the test needs {name}: see tests/e2e/conftest.py")
    return found


def pytest_runtest_setup() -> None:
    """A hook rather than a fixture: skips from one place are told in one line."""
    if not all(os.environ.get(name) for name in NEEDED):
        pytest.skip(f"the end-to-end tests need a running service: set {', '.join(NEEDED)}, or see `make e2e`")


@pytest.fixture
def service() -> Iterator[Service]:
    """The service with the first key; what a test submits is deleted at its end."""
    yield from _open(os.environ["SIFT_KEY"])


@pytest.fixture
def second() -> Iterator[Service]:
    """The service with the key of another caller, who has small limits."""
    yield from _open(_optional("SIFT_SECOND_KEY"))


@pytest.fixture
def admin() -> Iterator[Service]:
    """The service with a key that reads everything and changes nothing."""
    yield from _open(_optional("SIFT_ADMIN_KEY"))


@pytest.fixture
def stranger() -> Iterator[Service]:
    """The service without any key."""
    yield from _open(None)


@pytest.fixture
def model() -> str:
    """A model of the deployment's gateway."""
    return _optional("SIFT_MODEL")


@pytest.fixture
def site() -> str:
    """Root of the sample site, without a slash at its end."""
    return os.environ["SIFT_SITE"].rstrip("/")


@pytest.fixture
def visit() -> str:
    """A text that no other test or run has: it makes an address, and so the work, one of its own."""
    return secrets.token_hex(6)
