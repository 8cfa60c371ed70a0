"""The command that makes a first key, as docs/operations.md has it, on a table of the template."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sift.clock import SystemClock
from sift.services.keys import KeyService
from sift.store.dynamo import DynamoStore
from sift_client.local.cloud import Cloud
from sift_client.local.document import read_document
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint
from tests.docs.pages import ROOT, blocks, read, section


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    made = Cloud()
    try:
        yield made
    finally:
        made.close()


def test_the_key_that_they_print_opens_the_table(cloud: Cloud, tmp_path: Path) -> None:
    document = read_document(ROOT / "template.yaml", {})
    naming = Naming(document, "keys", cloud.account, cloud.url, "http://127.0.0.1:9")
    cloud.provision(make_blueprint(document, naming))
    table = naming.ref("JobsTable")
    line = next(
        line
        for block in blocks(section(read("docs/operations.md"), "Keys"))
        for line in block.text.splitlines()
        if "keys create" in line
    )
    arguments = shlex.split(line)[1:]
    where = arguments.index("--stack")
    arguments[where : where + 2] = ["--table", table]  # there is no CloudFormation here
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(ROOT / "layers" / "sift"), str(ROOT / "client")]),
        "AWS_ENDPOINT_URL": cloud.url,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    ran = subprocess.run(
        [sys.executable, "-m", "sift_client.cli", *arguments],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    keys = KeyService(DynamoStore(cloud.client("dynamodb"), table), SystemClock())
    identity = asyncio.run(keys.authenticate(ran.stdout.strip()))
    assert identity.caller == "acme/ann"
