"""The stack of template.yaml, built and deployed with the SAM CLI into an emulator of AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sift_client.site import Site, start_site
from tests.build.built import HOST_ARCHITECTURE, ROOT, Build
from tests.build.conftest import build, build_environment, sam
from tests.emulator.emulator import CREDENTIALS, REGION, Emulator
from tests.emulator.mending import Deployment, mend
from tests.integration.upstream.stub import StubGateway

__all__ = ["build", "build_environment", "sam"]  # fixtures

STACK = "sift"


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    program = ROOT / ".venv-emulator" / "bin" / "ministack"
    if not program.exists():
        pytest.skip("the emulator is not installed; make e2e installs it")
    with Emulator(program, tmp_path_factory.mktemp("emulator") / "emulator.log") as running:
        yield running


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with start_site() as running:
        yield running


@pytest.fixture(scope="session")
def gateway() -> Iterator[StubGateway]:
    running = StubGateway()
    yield running
    running.close()


@pytest.fixture(scope="session")
def deployment(
    emulator: Emulator,
    gateway: StubGateway, site: Site, sam: Callable[..., Any], build: Callable[[str], Build],
    build_environment: dict[str, str],
) -> Deployment:  # fmt: skip
    """`sam deploy` as a user types it, then what the emulator leaves out. Its functions run on this machine."""
    made = build(HOST_ARCHITECTURE)
    # Few workers: each is a process of its own here.
    parameters = {"GuardAllow": site.url.removeprefix("http://"), "FetchConcurrency": "2", "GatewayUrl": gateway.url()}
    build_environment |= {**CREDENTIALS, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": emulator.url}
    sam(
        "deploy", "--no-confirm-changeset", "--no-progressbar", "--parameter-overrides",
        *(f"{name}={value}" for name, value in parameters.items()),
        cwd=made.folder.parents[1],
    )  # fmt: skip
    listed = emulator.client("cloudformation").describe_stack_resources(StackName=STACK)["StackResources"]
    physical = {row["LogicalResourceId"]: row["PhysicalResourceId"] for row in listed}
    deployed = Deployment(made.template, parameters, physical)
    mend(deployed, emulator.client)
    return deployed
