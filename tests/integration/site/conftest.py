"""A running sample site and a browser-like client for it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from sift_client.site import Site, start_site


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with start_site() as running:
        yield running


@pytest.fixture
def http(site: Site) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=site.url, trust_env=False) as client:
        yield client
