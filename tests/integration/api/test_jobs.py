"""Jobs over HTTP: submit, status, cancel, and the same work again."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from sift import ids
from sift.clock import SystemClock
from sift.identity import Identity
from sift.services.keys import KeyService
from tests.integration.api.stage import NOT_THERE, Stage, read_event

URL = "https://example.com/"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_a_job_from_submit_to_end(stage: Stage) -> None:
    reply = stage.request(
        "POST", "/v1/jobs",
        {"targets": [{"url": URL, "id": "mine"}, {"url": f"{URL}404"}], "metadata": {"run": "7"}, "window": 1},
    )  # fmt: skip
    assert reply.status == 202
    job = reply.json
    assert ids.is_job_id(job["id"])
    assert reply.headers["location"] == f"/v1/jobs/{job['id']}"
    assert reply.headers["content-type"] == "application/json"
    assert {name: job[name] for name in ("kind", "status", "bytes", "window", "error", "reused", "metadata")} == {
        "kind": "fetch", "status": "queued", "bytes": 0, "window": 1, "error": None, "reused": False,
        "metadata": {"run": "7"},
    }  # fmt: skip
    assert job["counts"] == {"total": 2, "pending": 2, "running": 0, "done": 0, "failed": 0, "cancelled": 0}
    assert (job["started_at"], job["ended_at"]) == (None, None)
    assert all(MOMENT.fullmatch(job[name]) for name in ("created_at", "deadline_at", "expires_at"))
    assert stage.get(f"/v1/jobs/{job['id']}").json == job

    stage.work({f"{URL}404": NOT_THERE}, most=1)
    running = stage.get(f"/v1/jobs/{job['id']}").json
    assert (running["status"], running["counts"]["done"], running["bytes"]) == ("running", 1, len(URL))
    stage.work({f"{URL}404": NOT_THERE})
    ended = stage.get(f"/v1/jobs/{job['id']}").json
    assert ended["status"] == "partial"
    assert ended["counts"] == {"total": 2, "pending": 0, "running": 0, "done": 1, "failed": 1, "cancelled": 0}
    assert MOMENT.fullmatch(ended["started_at"])
    assert ended["created_at"] < ended["started_at"] < ended["ended_at"] < ended["expires_at"]


def test_options_of_a_target_win_over_those_of_the_job(stage: Stage) -> None:
    targets = [{"url": URL}, {"url": URL, "options": {"mode": "page"}}, {"url": URL, "options": {"mode": "auto"}}]
    reply = stage.request("POST", "/v1/jobs", {"targets": targets, "options": {"mode": "text", "pages": "1-2"}})
    assert reply.status == 202
    sent = [json.loads(message["Body"]).get("options") for message in stage.receive()]
    assert sorted(sent, key=str) == sorted(
        [{"mode": "text", "pages": "1-2"}, {"mode": "page", "pages": "1-2"}, {"pages": "1-2"}], key=str
    )


def test_the_same_work_again_is_the_same_job(stage: Stage) -> None:
    first = stage.request("POST", "/v1/jobs", {"targets": [{"url": URL, "options": {"mode": "auto"}}], "fresh": False})
    written_otherwise = '\n{ "window": 5,\t"targets" : [ {"options":{},  "url":"https:\\/\\/example.com\\u002f"} ]}'
    before = stage.stored()
    again = stage.request("POST", "/v1/jobs", written_otherwise)
    assert (first.status, again.status) == (202, 200)
    assert again.json == {**first.json, "reused": True}
    assert again.headers["location"] == first.headers["location"]
    assert stage.stored() == before
    stage.work()
    ended = stage.request("POST", "/v1/jobs", written_otherwise)
    assert (ended.status, ended.json["status"], ended.json["id"]) == (200, "done", first.json["id"])


def test_a_fresh_submission_is_a_new_job(stage: Stage) -> None:
    first = stage.submit(URL)
    stage.work()
    assert stage.submit(URL, fresh=True) != first


@pytest.mark.parametrize("header", ["idempotency-key", "Idempotency-Key", "x-idempotency-key", "X-Idempotency-Key"])
def test_a_callers_own_key(stage: Stage, header: str) -> None:
    def submit(url: str) -> Any:
        return stage.request("POST", "/v1/jobs", {"targets": [{"url": url}]}, headers={header: "my key"})

    first = submit(URL)
    assert first.status == 202
    again = submit(URL)
    assert (again.status, again.json["id"], again.json["reused"]) == (200, first.json["id"], True)
    before = stage.stored()
    other = submit(f"{URL}other")
    assert (other.status, other.code) == (409, "idempotency_mismatch")
    assert other.headers["x-should-retry"] == "false"
    assert other.json["job_id"] == first.json["id"]
    assert stage.stored() == before


def test_cancel(stage: Stage) -> None:
    job_id = stage.submit(URL, f"{URL}2", f"{URL}3", window=1)
    stage.work(most=1)
    reply = stage.request("POST", f"/v1/jobs/{job_id}/cancel")
    assert reply.status == 200
    assert reply.json["status"] == "cancelled"
    assert reply.json["counts"] == {"total": 3, "pending": 0, "running": 0, "done": 1, "failed": 0, "cancelled": 2}
    again = stage.request("POST", f"/v1/jobs/{job_id}/cancel")
    assert (again.status, again.json) == (200, reply.json)
    assert stage.get(f"/v1/jobs/{job_id}").json == reply.json
    stage.work()
    assert stage.get(f"/v1/jobs/{job_id}").json == reply.json
    # Its slot is free, and it does not stand for the work any more.
    assert stage.submit(URL, f"{URL}2", f"{URL}3") != job_id


def test_a_job_that_has_ended_can_not_be_cancelled(stage: Stage) -> None:
    job_id = stage.submit(URL)
    stage.work()
    before = stage.get(f"/v1/jobs/{job_id}").json
    reply = stage.request("POST", f"/v1/jobs/{job_id}/cancel")
    assert (reply.status, reply.code) == (409, "invalid_state")
    assert reply.headers["x-should-retry"] == "false"
    assert stage.get(f"/v1/jobs/{job_id}").json == before


def test_a_held_status_read_ends_at_once_when_there_is_nothing_to_wait_for(stage: Stage) -> None:
    job_id = stage.submit(URL)
    stage.work()
    assert stage.get(f"/v1/jobs/{job_id}", wait=20).json["status"] == "done"


def test_a_held_status_read_ends_with_its_seconds(stage: Stage) -> None:
    job_id = stage.submit(URL)
    assert stage.get(f"/v1/jobs/{job_id}", wait=1).json["status"] == "queued"


def test_a_held_status_read_ends_when_something_changes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = stage.submit(URL)
    looks = 0

    async def sleep(self: object, seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            now = ids.created_ms(job_id)
            await stage.store.claim(job_id, 0, now + 100_000, now)

    monkeypatch.setattr("sift.clock.SystemClock.sleep", sleep)
    assert stage.get(f"/v1/jobs/{job_id}", wait=20).json["status"] == "running"
    assert looks == 3


def test_another_callers_job_does_not_exist(stage: Stage) -> None:
    job_id = stage.submit(URL)
    other, same = stage.new_key("bob"), stage.new_key("ann")
    missing = ids.new_job_id(ids.created_ms(job_id))
    for method, path in (
        ("GET", "/v1/jobs/{}"), ("GET", "/v1/jobs/{}/targets"), ("GET", "/v1/jobs/{}/targets/0"),
        ("GET", "/v1/jobs/{}/targets/0/content"), ("POST", "/v1/jobs/{}/cancel"),
    ):  # fmt: skip
        answers = [
            stage.request(method, path.format(job_id), key=other),
            *(stage.request(method, path.format(name)) for name in (missing, "nonsense", "job_", "%2e%2e")),
        ]
        assert {(reply.status, reply.code, reply.json["detail"]) for reply in answers} == {
            (404, "not_found", answers[0].json["detail"])
        }, path
    assert stage.get(f"/v1/jobs/{job_id}", key=same).status == 200
    assert stage.state(job_id).status == "queued"
    # The same work of another caller is its own job.
    assert stage.request("POST", "/v1/jobs", {"targets": [{"url": URL}]}, key=other).status == 202


def test_an_expired_job_is_gone(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = stage.submit(URL)
    stage.work()
    expires_at = stage.state(job_id).expires_at
    assert expires_at is not None
    monkeypatch.setattr("sift.clock.SystemClock.now_ms", lambda self: expires_at * 1000)
    assert stage.get(f"/v1/jobs/{job_id}").code == "not_found"
    assert stage.submit(URL) != job_id


def test_a_status_read_writes_nothing(stage: Stage) -> None:
    job_id = stage.submit(URL)
    before = stage.state(job_id), stage.stored()
    for path in ("", "/targets", "/targets/0"):
        assert stage.get(f"/v1/jobs/{job_id}{path}").status == 200
    assert (stage.state(job_id), stage.stored()) == before


@pytest.mark.parametrize("name", ["api-submit", "api-status", "api-targets", "api-cancel", "api-healthz"])
def test_the_events_in_the_repository_are_answered(stage: Stage, name: str) -> None:
    job_id = stage.submit(f"{URL}x") if name != "api-submit" else ""
    text = json.dumps(read_event(name)).replace("sift_examplekey_examplesecret", stage.key)
    event = json.loads(re.sub(r"job_[0-9A-Z]{26}", job_id, text))
    if "wait" in event.get("queryStringParameters", {}):
        stage.request("POST", f"/v1/jobs/{job_id}/cancel")
    reply = stage.send(event)
    assert reply.status == (202 if name == "api-submit" else 200), reply.raw
    assert "problem" not in reply.headers["content-type"]


def test_a_jobs_identity_is_kept_without_its_secret(stage: Stage) -> None:
    job_id = stage.submit(URL)
    items = stage.deployment.client("dynamodb").scan(TableName=stage.table)["Items"]
    _, key_id, secret = stage.key.split("_")
    assert secret not in json.dumps(items, default=str)
    meta, _ = asyncio.run(stage.store.get_job(job_id)) or (None, None)
    assert meta is not None
    who = Identity("acme", "ann", key_id, client_ip="203.0.113.7")
    assert Identity.from_snapshot(meta.identity) == who
    assert meta.caller == who.caller


def test_a_job_runs_as_whoever_submitted_it(stage: Stage) -> None:
    key = stage.new_key(
        "bob", scopes=["fetch", "admin:acme"], subject="Bob", application="crawler", allowed_models=["m1"],
        denied_models=["m2"],
    )  # fmt: skip
    job_id = stage.request("POST", "/v1/jobs", {"targets": [{"url": URL}]}, key=key).json["id"]
    asyncio.run(KeyService(stage.store, SystemClock()).revoke(key.split("_")[1]))
    stage.work()
    meta, _ = asyncio.run(stage.store.get_job(job_id)) or (None, None)
    assert meta is not None
    assert Identity.from_snapshot(meta.identity) == Identity(
        "acme", "bob", key.split("_")[1], ("fetch", "admin:acme"), subject="Bob", application="crawler",
        client_ip="203.0.113.7", allowed_models=("m1",), denied_models=("m2",),
    )  # fmt: skip
