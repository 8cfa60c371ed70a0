"""The benchmark of inference jobs, in small: it measures what it says, whatever the numbers."""

from __future__ import annotations

import asyncio
from collections import Counter

from benchmarks.inference import directly, peak, sent, spool_and_store, worked
from tests.integration.upstream.stub import StubGateway


def test_each_way_asks_as_often_as_it_says(stub: StubGateway) -> None:
    for way in (directly, sent, worked):
        stub.received.clear()
        took = asyncio.run(way(stub.url(), 25))
        assert len(took) == 2
        assert Counter(received.path for received in stub.received) == {"/v1/chat/completions": 25}


def test_responses_are_stored_whole(stub: StubGateway) -> None:
    before, after = asyncio.run(spool_and_store(stub.url(), 3, 1_000_000))
    assert 0 < before <= after <= peak()
