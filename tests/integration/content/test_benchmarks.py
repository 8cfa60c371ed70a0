"""The benchmarks of imports and memory, in small: they measure what they say, whatever the numbers."""

from __future__ import annotations

import asyncio
import sys

import pytest

from benchmarks.imports import measure as measure_imports
from benchmarks.imports import packages
from benchmarks.memory import measure as measure_memory
from benchmarks.memory import page


def test_the_function_is_put_together_and_compared_with_boto3() -> None:
    assert set(measure_imports(1)) == {"boto3", "fetch"}
    found = packages(1)
    assert {"sift", "pydantic"} <= set(found)
    assert not {"urllib3", "s3transfer"} & set(found)  # boto3 has them already
    assert not {"httpcore2", "httpx2", "h2", "h11", "anyio", "certifi"} & set(found)  # with the first exchange
    assert not {"trafilatura", "lxml", "turbohtml", "pypdfium2", "jq"} & set(found)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_all_processes_of_a_worker_are_seen() -> None:
    assert 90_000 < len(page(1, 100_000)) <= 100_000
    said, peak = asyncio.run(measure_memory(4, 100_000))
    assert said == "{'too little': 4}"  # the benchmark's own pages are larger
    assert {"worker", "fork server"} <= set(peak.parts)
    assert peak.total == sum(peak.parts.values()) > 0
