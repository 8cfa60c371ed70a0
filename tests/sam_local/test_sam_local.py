"""`sam local invoke` with every event, and a job from its submission to its result by `sam local start-api`."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from sift_client.client import Sift
from sift_client.local import LocalStack
from tests.build.built import ROOT
from tests.e2e.service import ENDS
from tests.sam_local.expected import STATUSES, find_fault
from tests.template.document import functions, load

pytestmark = [pytest.mark.needs_containers, pytest.mark.timeout(1200)]

FOLDERS = {function["CodeUri"].split("/")[1]: name for name, function in functions(load()).items()}
EVENTS = sorted(path.stem for path in (ROOT / "events").glob("*.json"))
PATIENCE_S = 300.0


@pytest.mark.parametrize("name", EVENTS)
def test_every_event(invoke: Callable[[str, str], Any], name: str) -> None:
    answer = invoke(FOLDERS[name.split("-")[0]], name)
    event = json.loads((ROOT / "events" / f"{name}.json").read_text(encoding="utf-8"))
    assert find_fault(name, event, answer) is None


def test_no_status_is_of_an_event_that_is_gone() -> None:
    assert set(STATUSES) <= set(EVENTS)


def test_a_message_that_is_none_is_moved_away(stack: LocalStack, invoke: Callable[[str, str], Any]) -> None:
    sqs, letters = stack.client("sqs"), stack.physical("FetchDeadLetterQueue")
    sqs.purge_queue(QueueUrl=letters)
    invoke("FetchFunction", "fetch-batch")
    (moved,) = sqs.receive_message(QueueUrl=letters, MaxNumberOfMessages=10)["Messages"]
    assert moved["Body"] == "not a target message"


def test_a_job_from_submission_to_result(stack: LocalStack, sam_local: Callable[..., subprocess.Popen[str]]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    process = sam_local("start-api", "--port", str(port), "--warm-containers", "LAZY")
    # A full pipe would stop it.
    drains = [threading.Thread(target=pipe.read, daemon=True) for pipe in (process.stdout, process.stderr) if pipe]
    for drain in drains:
        drain.start()
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url)
        with Sift(url, stack.key) as client:
            job = client.submit([f"{stack.site.url}/articles/tide-tables.html"])
            deadline = time.monotonic() + PATIENCE_S
            while client.get(job["id"])["status"] not in ENDS:
                assert time.monotonic() < deadline
                time.sleep(0.5)
            (slot,) = client.targets(job["id"], content=True)
        assert slot["status"] == "done"
        assert "Thirty-seven wheels" in slot["content"]
    finally:
        process.terminate()
        process.wait(60)
        for drain in drains:
            drain.join(10)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()


def _wait(process: subprocess.Popen[str], url: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if httpx2.get(f"{url}/healthz", timeout=60.0, trust_env=False).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        assert process.poll() is None, "sam local start-api ended"
        assert time.monotonic() < deadline
        time.sleep(0.5)
