"""What the API function does not load before somebody needs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "eu-north-1", "TABLE_NAME": "t", "BUCKET_NAME": "b", "FETCH_QUEUE_URL": "https://sqs.test/q",
    "EVENT_BUS_NAME": "e", "JOBS_TOTAL": "1", "JOBS_PER_CALLER": "1", "TARGETS_PER_JOB": "1", "RETAINED_JOBS": "1",
    "TTL_SECONDS": "1", "DEADLINE_SECONDS": "60", "MAX_JOB_BYTES": "1", "CALLER_CLASSES": "", "JWT_ISSUER": "",
    "JWT_AUDIENCE": "", "JWT_JWKS_URL": "", "JWT_CLAIMS": "tenant=tenant,subject=sub", "POWERTOOLS_SERVICE_NAME": "sift",
}  # fmt: skip
START = """
import sys, types
sys.path.insert(0, {folder!r})
import app
from sift import bootstrap
bootstrap.api()
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Modules of an API function that is ready for its first request."""
    paths = [str(ROOT / "layers" / "sift"), str(ROOT)]
    ran = subprocess.run(
        [sys.executable, "-c", START.format(folder=str(ROOT / "functions" / "api"))], capture_output=True, text=True,
        check=True, env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    return set(ran.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        pytest.param("aws_lambda_powertools.event_handler.openapi.models", id="what only the document needs"),
        pytest.param("jwt", id="tokens"),
        pytest.param("cryptography", id="keys of an identity provider"),
        pytest.param("sift.content", id="the pipeline"),
        pytest.param("httpx2", id="the client of the pipeline"),
        pytest.param("sift.services.work", id="the worker"),
        pytest.param("sift.services.sweep", id="the sweeper"),
    ],
)
def test_the_api_starts_without(loaded: set[str], module: str) -> None:
    assert "sift.api.routes" in loaded
    assert module not in loaded
