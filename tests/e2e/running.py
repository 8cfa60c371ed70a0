"""The suite as whoever has a service runs it: in a process of its own, told by its environment what to test."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sift.clock import SystemClock
from sift.services.keys import KeyService
from sift.store.dynamo import DynamoStore

ROOT = Path(__file__).parents[2]


def run_suite(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs tests/e2e with these variables and no other of sift's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIFT_", "PYTEST_", "CI"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", "--durations=10", "tests/e2e"],
        cwd=ROOT, env=kept | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def make_keys(dynamodb: Any, table: str) -> dict[str, str]:
    """The three keys that the suite wants, as variables of its environment."""
    keys = KeyService(DynamoStore(dynamodb, table), SystemClock())

    def make(actor: str, *scopes: str, limits: dict[str, int] | None = None) -> str:
        return asyncio.run(keys.create(tenant="e2e", actor=actor, scopes=list(scopes), limits=limits))

    return {
        "SIFT_KEY": make("first", "fetch", "inference"),
        "SIFT_SECOND_KEY": make("second", "fetch", limits={"jobs_per_caller": 1, "targets_per_job": 2}),
        "SIFT_ADMIN_KEY": make("admin", "admin"),
    }
