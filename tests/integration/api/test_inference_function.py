"""The worker of inference jobs, called as Lambda calls it, with a gateway on loopback."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from sift import environment
from sift.blob_keys import content_key
from sift.bootstrap import callers
from sift.identity import Identity
from sift.model_requests import read_request
from sift.services.submit import Request
from sift.store.ports import Outcome
from tests.integration.api.stage import Stage, context, read_event
from tests.integration.api.test_functions import invoke
from tests.integration.upstream.stub import USAGE, StubGateway, completion

ASKED = [{"role": "user", "content": "How high is the lantern?"}]
ANN = Identity(
    tenant="acme", actor="ann", key_id="0123456789ab", scopes=("inference",), application="notebook",
    limits={"jobs_per_caller": 9},
)  # fmt: skip


def submit(*orders: dict[str, Any], **values: Any) -> str:
    """The id of a new job of a request for each of these orders to the gateway."""
    path = "/v1/chat/completions"
    specs = [
        read_request(n, path, "small", {"stub": order, "messages": ASKED, "seed": n}) for n, order in enumerate(orders)
    ]
    submitted = environment.run(callers.api().submitter.submit(ANN, Request(specs, **values)))
    assert not submitted.reused
    return submitted.meta.job_id


def inference_function(stage: Stage, seconds: float = 900.0) -> list[str]:
    """One invocation; the bodies of the messages that it kept."""
    return invoke(stage, "inference", stage.inference_url, seconds)


def outcomes(stage: Stage, job_id: str) -> dict[int, Outcome]:
    return dict(asyncio.run(stage.store.get_segment_outcomes(job_id, 0, 0, 99)))


def test_a_batch(stage: Stage, gateway: StubGateway) -> None:
    missing = {"status": 404, "body": "no such model"}
    job_id = submit({}, missing, {"status": 429}, {"size": 1_000_000}, {"cut": "length"})
    kept = [json.loads(body)["index"] for body in inference_function(stage)]
    assert kept == [2, 4], "what is busy, and what was cut off, is asked for again"
    state = stage.state(job_id)
    assert (state.status, state.done, state.failed, sorted(state.flight)) == ("running", 2, 1, [2, 4])
    found = outcomes(stage, job_id)
    assert [found[index].status for index in (0, 1, 3)] == ["done", "failed", "done"]
    assert (found[0].content, found[0].document["meta"]["usage"]) == (completion().encode(), USAGE)
    assert (found[1].content, found[1].document["error"]["status"]) == (b"no such model", 404)
    large = asyncio.run(stage.blobs.get(content_key(job_id, 3, found[3].lease)))
    assert (len(large or b""), found[3].size) == (1_000_000, 1_000_000)
    sent = {json.loads(received.body)["seed"]: received for received in gateway.received}
    assert sorted(sent) == [0, 1, 2, 3, 4]
    assert len(gateway.received) == 5
    assert sent[0].header("x-sift-tenant") == "acme"
    assert sent[0].header("x-sift-application") == "notebook"
    assert len({received.header("x-request-id") for received in sent.values()}) == 5


def test_a_whole_job(stage: Stage, gateway: StubGateway) -> None:
    job_id = submit(*({} for _ in range(25)), window=8)
    while stage.state(job_id).status != "done":
        assert inference_function(stage) == []
    assert sorted(json.loads(received.body)["seed"] for received in gateway.received) == list(range(25))
    assert stage.receive() == [], "nothing went to the other queue"


def test_the_event_in_the_repository_leaves_nothing_behind(stage: Stage, gateway: StubGateway) -> None:
    answer = stage.deployment.functions["inference"].lambda_handler(read_event("inference-batch"), context())
    assert answer == {"batchItemFailures": []}
    (dead,) = stage.receive(stage.inference_dead_url)
    assert dead["Body"] == "not a target message"
    assert gateway.received == [], "the job is gone"
