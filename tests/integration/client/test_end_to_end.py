"""The end-to-end suite against a local stack, and without a service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sift_client.local import LocalStack
from tests.e2e.running import ROOT, make_keys, run_suite
from tests.integration.upstream.stub import StubGateway


@pytest.fixture
def gateway() -> Iterator[StubGateway]:
    running = StubGateway()
    yield running
    running.close()


@pytest.mark.timeout(1200)
def test_a_local_stack_passes_the_end_to_end_suite(tmp_path: Path, gateway: StubGateway) -> None:
    parameters = {"GatewayUrl": gateway.url()}
    with LocalStack(ROOT / "template.yaml", site=True, log_dir=tmp_path, parameters=parameters) as stack:
        keys = make_keys(stack.client("dynamodb"), stack.physical("JobsTable"))
        ran = run_suite({"SIFT_URL": stack.url, "SIFT_SITE": stack.site.url, "SIFT_MODEL": "small", **keys})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^=+ \d+ passed in ", ran.stdout, re.MULTILINE), ran.stdout


def test_without_a_service_the_suite_is_skipped_in_one_line() -> None:
    ran = run_suite({})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^=+ \d+ skipped in ", ran.stdout, re.MULTILINE), ran.stdout
    (line,) = re.findall(r"^SKIPPED.*$", ran.stdout, re.MULTILINE)
    assert "set SIFT_URL, SIFT_KEY, SIFT_SITE" in line
