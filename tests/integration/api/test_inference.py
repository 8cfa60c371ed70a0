"""Inference jobs through the HTTP API: submitted, worked on by the function, read, steered, retried and removed."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from sift.blob_keys import job_prefix
from sift.clock import SystemClock
from sift.identity import Identity
from sift.model_requests import INLINE_BODY_BYTES, MAX_BODY_BYTES
from sift.nesting import MAX_LEVELS
from sift.services.control import Controller
from sift.services.read import Reader
from tests.integration.api.stage import Reply, Stage, context
from tests.integration.api.test_functions import invoke
from tests.integration.upstream.stub import StubGateway

PATH = "/v1/chat/completions"
#: Far more than anything here takes, on however slow a machine.
PATIENCE = 300.0


@pytest.fixture
def key(stage: Stage) -> str:
    return stage.new_key("asker", scopes=("inference",), limits={"jobs_per_caller": 9})


def order(**values: Any) -> dict[str, Any]:
    return {"path": PATH, "body": {"stub": values}}


def send(stage: Stage, key: str, *requests: dict[str, Any], **values: Any) -> Reply:
    return stage.request("POST", "/v1/jobs", {"requests": requests, **values}, key=key)


def work(stage: Stage, job_id: str) -> str:
    """The status of a job when its function has nothing more to do for it."""
    while stage.state(job_id).status in {"queued", "running"}:
        assert invoke(stage, "inference", stage.inference_url, 900.0) == []
    return stage.state(job_id).status


def test_a_job_and_its_answers(stage: Stage, gateway: StubGateway, key: str) -> None:
    wrong = {"status": 400, "body": '{"error": "no"}', "content_type": "application/json"}
    reply = send(stage, key, {**order(), "model": "small", "id": "one"}, order(**wrong), order(size=4_500_000))
    assert reply.status == 202, reply.raw
    job = reply.json
    assert (job["kind"], job["counts"]["total"]) == ("inference", 3)
    again = send(stage, key, {**order(), "model": "small", "id": "one"}, order(**wrong), order(size=4_500_000))
    assert (again.status, again.json["id"], again.json["reused"]) == (200, job["id"], True)
    where = f"/v1/jobs/{job['id']}/targets"
    before = stage.get(where, key=key).json["targets"]
    assert [(slot["status"], slot["path"], slot["model"]) for slot in before] == [
        ("pending", PATH, "small"), ("pending", PATH, None), ("pending", PATH, None),
    ]  # fmt: skip
    assert all("url" not in slot for slot in before)

    assert work(stage, job["id"]) == "partial"
    done, failed, large = stage.get(where, key=key).json["targets"]
    assert (done["status"], done["id"], done["media_type"], done["chars"]) == ("done", "one", "application/json", None)
    assert done["meta"]["usage"]["total_tokens"] == 8
    assert (done["meta"]["status"], done["meta"]["attempts"]) == (200, 1)
    assert (failed["error"]["code"], failed["error"]["status"], failed["bytes"]) == ("http_error", 400, 15)
    content = stage.get(f"{where}/1/content", key=key)
    assert (content.status, content.headers["content-type"], content.raw) == (
        200, "application/json", b'{"error": "no"}',
    )  # fmt: skip
    assert content.headers["content-security-policy"] == "sandbox"
    assert stage.get(f"{where}/1", key=key).json["content"] == '{"error": "no"}'
    assert large["bytes"] == 4_500_000
    assert stage.get(f"{where}/2/content", key=key).status == 303
    assert stage.get(f"{where}/2", key=key).json["content_url"] == f"{where}/2/content"

    kinds = {kind: stage.get("/v1/jobs", key=key, kind=kind).json["jobs"] for kind in ("fetch", "inference")}
    assert [len(kinds["fetch"]), [one["id"] for one in kinds["inference"]]] == [0, [job["id"]]]


def test_who_may_read_it(stage: Stage, gateway: StubGateway, key: str) -> None:
    job_id = send(stage, key, order()).json["id"]
    work(stage, job_id)
    where = f"/v1/jobs/{job_id}/targets/0/content"
    other = stage.new_key("other", scopes=("inference",))
    assert stage.get(where, key=other).code == "not_found"
    assert stage.get(where, key=stage.new_key("boss", scopes=("admin",))).status == 200
    assert stage.get(where, key=stage.new_key("boss", scopes=("admin:else",))).code == "not_found"
    fetcher = stage.new_key("asker")  # the same caller, with another scope
    assert stage.get(where, key=fetcher).status == 200
    for method, path in (("POST", "/retry"), ("POST", "/cancel"), ("DELETE", "")):
        assert stage.request(method, f"/v1/jobs/{job_id}{path}", key=fetcher).code == "forbidden"


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        ({"path": PATH, "body": {}}, 422, "invalid_target"),
        ({"path": "/v1/../admin", "body": {"n": 1}}, 422, "invalid_target"),
        ({"path": "/admin/keys", "body": {"n": 1}}, 422, "invalid_target"),
        ({"path": f"{PATH}?x=1", "body": {"n": 1}}, 422, "invalid_target"),
        ({"path": PATH, "model": "a", "body": {"model": "b"}}, 422, "invalid_target"),
        ({"path": PATH, "body": {"n": "x" * (MAX_BODY_BYTES + 1)}}, 413, "request_too_large"),
        ({"path": PATH, "body": {"model": "bad-7"}}, 403, "model_not_allowed"),
        ({"path": PATH, "body": {"n": 1}}, 403, "model_not_allowed"),
    ],
)
def test_a_refusal_names_the_request_and_stores_nothing(
    stage: Stage, gateway: StubGateway, request_: dict[str, Any], status: int, code: str
) -> None:
    key = stage.new_key("asker", scopes=("inference",), denied_models=("bad*",))
    before = stage.stored()
    reply = send(stage, key, {"path": PATH, "model": "good", "body": {"n": 0}}, request_)
    assert (reply.status, reply.code, reply.json["index"]) == (status, code, 1)
    assert stage.stored() == before
    assert stage.receive(stage.inference_url) == []


def test_a_number_beyond_a_double(stage: Stage, gateway: StubGateway, key: str) -> None:
    reply = stage.request(
        "POST", "/v1/jobs", f'{{"requests": [{{"path": "{PATH}", "body": {{"n": 1e999}}}}]}}', key=key
    )
    assert (reply.status, reply.code, reply.json["index"]) == (422, "invalid_target", 0)


def test_a_retry_and_a_removal(stage: Stage, gateway: StubGateway, key: str) -> None:
    long = {"path": PATH, "body": {"stub": {"status": 500, "times": 1}, "more": "x" * INLINE_BODY_BYTES}}
    first = send(stage, key, long, order()).json["id"]
    assert work(stage, first) == "partial"
    retried = stage.request("POST", f"/v1/jobs/{first}/retry", key=key)
    assert retried.status == 202
    second = retried.json["id"]
    assert (retried.json["kind"], retried.json["counts"]["total"]) == ("inference", 1)
    assert stage.request("DELETE", f"/v1/jobs/{first}", key=key).status == 204
    stage.deployment.functions["sweep"].lambda_handler({}, context())
    assert _keys(stage, first) == []
    work(stage, second)
    sent = [json.loads(received.body) for received in gateway.received]
    assert sum("more" in body for body in sent) == 2
    assert len(sent[-1]["more"]) == INLINE_BODY_BYTES
    assert stage.request("DELETE", f"/v1/jobs/{second}", key=key).status == 204
    stage.deployment.functions["sweep"].lambda_handler({}, context())
    assert _keys(stage, second) == []


@pytest.mark.parametrize(("action", "end"), [("cancel", "cancelled"), ("pause", "paused")])
def test_a_request_in_flight_is_aborted(stage: Stage, gateway: StubGateway, key: str, action: str, end: str) -> None:
    job_id = send(stage, key, order(stall=True)).json["id"]
    reader = Reader(stage.store, stage.blobs, SystemClock())
    controller = Controller(reader, stage.advancer(), stage.store, SystemClock())
    seen: list[str] = []

    def steer() -> None:
        """As another process does it, while this one waits for the gateway."""
        until = time.monotonic() + PATIENCE
        while not gateway.received and time.monotonic() < until:
            time.sleep(0.05)
        who = Identity("acme", "asker", None, ("inference",))
        _, state = asyncio.run(getattr(controller, action)(who, job_id))
        seen.append(state.status)

    steering = threading.Thread(target=steer, daemon=True)
    steering.start()
    assert invoke(stage, "inference", stage.inference_url, 900.0) == []
    steering.join(PATIENCE)
    assert seen == [{"cancel": "cancelling", "pause": "pausing"}[action]]
    (received,) = gateway.received
    assert received.closed.wait(PATIENCE)
    assert stage.get(f"/v1/jobs/{job_id}", key=key).json["status"] == end
    assert stage.get(f"/v1/jobs/{job_id}/targets/0/content", key=key).code == "not_found"
    if action == "pause":
        gateway.orders[PATH] = {}
        assert stage.request("POST", f"/v1/jobs/{job_id}/resume", key=key).status == 200
        assert stage.receive(stage.inference_url), "it is on the queue again"


def _keys(stage: Stage, job_id: str) -> list[str]:
    bucket = stage.environ["BUCKET_NAME"]
    listed = stage.deployment.client("s3").list_objects_v2(Bucket=bucket, Prefix=job_prefix(job_id))
    return [found["Key"] for found in listed.get("Contents", ())]


def test_bodies_nested_ever_deeper_are_refused_and_break_nothing(stage: Stage, gateway: StubGateway, key: str) -> None:
    """As deep as can be read is deeper than what else is done with a body gets."""
    for depth in (*range(100, 1_000, 100), *range(850, 1_010, 3), 5_000, 100_000):
        body = '{"x":' * depth + "1" + "}" * depth
        reply = stage.request("POST", "/v1/jobs", f'{{"requests": [{{"path": "{PATH}", "body": {body}}}]}}', key=key)
        assert reply.status in {202, 400, 422}, (depth, reply.raw)
        if reply.status == 202:
            assert stage.request("POST", f"/v1/jobs/{reply.json['id']}/cancel", key=key).status == 200
            assert depth < MAX_LEVELS
