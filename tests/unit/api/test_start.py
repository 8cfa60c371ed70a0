"""What the API function does not load before somebody needs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sift_client.local.document import read_document
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint

ROOT = Path(__file__).parents[3]
START = """
import sys
sys.path.insert(0, {folder!r})
import app
from sift.bootstrap import callers
callers.api()
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Modules of an API function that is ready for its first request."""
    document = read_document(ROOT / "template.yaml", {})
    naming = Naming(document, "start", "123456789012", "http://127.0.0.1:9", "http://127.0.0.1:9")
    environment = make_blueprint(document, naming).functions["ApiFunction"].environment
    environment = {**os.environ, **environment, "AWS_DEFAULT_REGION": "eu-north-1"}
    paths = [str(ROOT / "layers" / "sift"), str(ROOT)]
    ran = subprocess.run(
        [sys.executable, "-c", START.format(folder=str(ROOT / "functions" / "api"))], capture_output=True, text=True,
        check=True, env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
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
        pytest.param("sift.services.submit", id="what only a submission needs"),
        pytest.param("sift.services.advance", id="what only brings jobs forward"),
        pytest.param("sift.services.tokens", id="the service of tokens"),
        pytest.param("sift.queue.sqs", id="queues"),
        pytest.param("sift.api.answers", id="models of answers"),
        pytest.param("sift.pacing", id="hosts' paces"),
        pytest.param("sift.assembly", id="results files"),
        pytest.param("sift.services.sweep", id="the sweeper"),
    ],
)
def test_the_api_starts_without(loaded: set[str], module: str) -> None:
    assert "sift.api.routes" in loaded
    assert module not in loaded
