"""One deployment for the session, and a stage on it for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from sift import environment
from tests.integration.api.stage import Deployment, Stage, forget_process, forget_services
from tests.integration.upstream.stub import StubGateway


@pytest.fixture(scope="session")
def deployment() -> Iterator[Deployment]:
    # Powertools reads these when the functions are loaded.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POWERTOOLS_SERVICE_NAME", "sift")
        patch.setenv("POWERTOOLS_METRICS_NAMESPACE", "sift/test")
        patch.setenv("POWERTOOLS_LOG_LEVEL", "CRITICAL")
        made = Deployment()
    try:
        yield made
    finally:
        for service in ("dynamodb", "s3", "sqs", "events"):
            if "AWS_ENDPOINT_URL" in os.environ:
                environment.client(service).close()
        forget_process()
        made.cloud.close()


@pytest.fixture
def stage(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(deployment)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    forget_services()
    yield made
    forget_services()


@pytest.fixture
def gateway(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubGateway]:
    """A model gateway that the functions of the stage are told of."""
    stub = StubGateway()
    monkeypatch.setenv("GATEWAY_URL", stub.url())
    forget_services()
    yield stub
    stub.close()
