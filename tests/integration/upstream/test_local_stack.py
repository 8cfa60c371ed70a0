"""Inference jobs on the local stack: processes of their own, a queue of their own, and a gateway on loopback."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sift.clock import SystemClock
from sift.services.keys import KeyService
from tests.integration.drill.stage import Caller, Stage, open_stage
from tests.integration.local.project import wait_for
from tests.integration.upstream.stub import USAGE, StubGateway, completion

PATH = "/v1/chat/completions"
PATIENCE_S = 300.0


def caller(stage: Stage) -> Caller:
    keys = KeyService(stage.store, SystemClock())
    key = asyncio.run(keys.create(tenant="acme", actor="ann", scopes=("inference",), application="notebook"))
    return Caller(stage.stack.url, key)


def submit(ann: Caller, *orders: dict[str, Any]) -> str:
    requests = [{"path": PATH, "model": "small", "body": {"n": n, "stub": order}} for n, order in enumerate(orders)]
    reply = ann.ask("POST", "/v1/jobs", {"requests": requests})
    assert reply.status == 202, reply.body
    job_id: str = reply.json()["id"]
    return job_id


def numbers(stub: StubGateway) -> Counter[int]:
    return Counter(json.loads(received.body)["n"] for received in stub.received)


@pytest.mark.timeout(1_200)
def test_a_job_and_a_cancelled_one(tmp_path: Path, stub: StubGateway) -> None:
    parameters = {"GatewayUrl": stub.url(), "InferenceConcurrency": "2"}
    with open_stage(tmp_path, {}, parameters) as stage:
        ann = caller(stage)
        orders: list[dict[str, Any]] = [{} for _ in range(20)]
        job_id = submit(ann, *orders, {"size": 6_000_000}, {"status": 400, "body": "no"}, {"cut": "length", "times": 1})
        job = ann.end(job_id, PATIENCE_S)
        assert (job["status"], job["counts"]["done"], job["counts"]["failed"]) == ("partial", 22, 1)
        assert numbers(stub) == Counter(range(23)) + Counter([22]), "what was cut off is sent again, and nothing else"
        reply = ann.ask("GET", f"/v1/jobs/{job_id}/targets/0/content")
        assert (reply.status, reply.body.decode()) == (200, completion())
        slots = ann.slots(job_id)
        assert slots[0]["meta"]["usage"] == USAGE
        assert (slots[21]["status"], slots[21]["error"]["code"]) == ("failed", "http_error")
        assert stub.received[0].header("x-sift-application") == "notebook"

        stub.received.clear()
        job_id = submit(ann, {"stall": True}, {"events": 10**6, "pause": 0.05})
        wait_for(lambda: len(stub.received) == 2, PATIENCE_S)
        assert ann.ask("POST", f"/v1/jobs/{job_id}/cancel").json()["status"] == "cancelling"
        assert all(received.closed.wait(PATIENCE_S) for received in stub.received)
        assert ann.end(job_id, PATIENCE_S)["status"] == "cancelled"
        assert len(stub.received) == 2


def test_without_a_gateway_there_are_none(tmp_path: Path) -> None:
    with open_stage(tmp_path, {}, {}) as stage:
        reply = caller(stage).ask("POST", "/v1/jobs", {"requests": [{"path": PATH, "body": {"n": 1}}]})
        assert (reply.status, reply.json()["code"]) == (403, "kind_disabled")
