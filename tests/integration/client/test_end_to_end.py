"""The end-to-end suite, as whoever has a service runs it, against a local stack."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sift.clock import SystemClock
from sift.services.keys import KeyService
from sift.store.dynamo import DynamoStore
from sift_client.local import LocalStack

ROOT = Path(__file__).parents[3]


def _run(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The suite in a process of its own, since its address and keys come from the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIFT_", "PYTEST_", "CI"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", "tests/e2e"],
        cwd=ROOT, env=kept | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def _make_key(stack: LocalStack, actor: str, scopes: list[str], limits: dict[str, int] | None = None) -> str:
    keys = KeyService(DynamoStore(stack.client("dynamodb"), stack.physical("JobsTable")), SystemClock())
    return asyncio.run(keys.create(tenant="local", actor=actor, scopes=scopes, limits=limits))


@pytest.mark.timeout(1200)
def test_a_local_stack_passes_the_end_to_end_suite(tmp_path: Path) -> None:
    with LocalStack(ROOT / "template.yaml", site=True, log_dir=tmp_path) as stack:
        ran = _run({
            "SIFT_URL": stack.url,
            "SIFT_KEY": _make_key(stack, "first", ["fetch"]),
            "SIFT_SITE": stack.site.url,
            "SIFT_SECOND_KEY": _make_key(stack, "second", ["fetch"], {"jobs_per_caller": 1, "targets_per_job": 2}),
            "SIFT_ADMIN_KEY": _make_key(stack, "admin", ["admin"]),
        })  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert re.search(r"^=+ \d+ passed in ", ran.stdout, re.MULTILINE), ran.stdout


def test_without_a_service_the_suite_is_skipped_in_one_line() -> None:
    ran = _run({})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^=+ \d+ skipped in ", ran.stdout, re.MULTILINE), ran.stdout
    (line,) = re.findall(r"^SKIPPED.*$", ran.stdout, re.MULTILINE)
    assert "set SIFT_URL, SIFT_KEY, SIFT_SITE" in line
