"""The OpenAPI document: it is what the code says, it is served, and every status in it can be had."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

import sift
from sift.api.answers import Fetched, Health, Job, JobPage, Problem, Target, TargetPage
from sift.errors import TargetFailed, Unavailable
from sift.targets import Content
from tests.integration.api.stage import ROOT, Reply, Stage

DOCUMENT = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
ROUTES = [(method.upper(), path) for path, routes in DOCUMENT["paths"].items() for method in routes]
JOB = "/v1/jobs/{job_id}"
TARGET = f"{JOB}/targets/{{index}}"
URL = "https://example.com/"


def test_the_document_in_the_repository_is_that_of_the_code() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "sift.api.openapi"], capture_output=True, check=True, cwd=ROOT
    ).stdout
    assert printed == (ROOT / "docs" / "openapi.json").read_bytes(), "run `make openapi`"


def test_the_template_has_every_route_of_the_document_and_no_other(stage: Stage) -> None:
    def shape(path: str) -> str:
        return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))

    made = {(route.method, shape(route.path)) for route in stage.deployment.blueprint.routes}
    assert made == {(method, shape(path)) for method, path in ROUTES} | {("GET", "/openapi.json"), ("GET", "/docs")}


@pytest.mark.parametrize("key", [None, ""])
def test_the_public_routes_need_no_key(stage: Stage, key: str | None) -> None:
    health = stage.get("/healthz", key=key)
    assert (health.status, health.json) == (200, {"status": "ok", "version": sift.__version__})
    served = stage.get("/openapi.json", key=key)
    assert (served.status, served.json) == (200, DOCUMENT)
    page = stage.get("/docs", key=key)
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert b"swagger" in page.raw.lower()


def test_the_public_routes_need_no_table(stage: Stage) -> None:
    stage.deployment.client("dynamodb").delete_table(TableName=stage.table)
    assert stage.get("/healthz", key=None).status == 200


def test_every_operation_says_what_it_does_and_all_errors_are_problems() -> None:
    for path in DOCUMENT["paths"].values():
        for route in path.values():
            assert route["description"].endswith(".")
            assert route["summary"]
            assert route["description"].startswith(route["summary"])
            for status, response in route["responses"].items():
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"]
                    assert response["content"]["application/problem+json"]["schema"] == {
                        "$ref": "#/components/schemas/Problem"
                    }


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[1] != "/healthz"])
def test_a_query_parameter_that_a_route_does_not_take_is_refused_and_named(
    stage: Stage, method: str, path: str
) -> None:
    job_id = new_job(stage)
    state = stage.state(job_id)
    body = {"url": URL} if path == "/v1/fetch" else GOOD if method == "POST" else None
    reply = stage.request(method, fill(path, job_id), body, Wait=1, surprise="x" * 9)
    assert (reply.status, reply.code) == (422, "invalid_request")
    assert [field["field"] for field in reply.json["fields"]] == ["Wait", "surprise"]
    assert reply.json["detail"].startswith("Wait: ")
    assert stage.state(job_id) == state


def fill(path: str, job_id: str) -> str:
    return path.format(job_id=job_id, index=0)


def new_job(stage: Stage, count: int = 1) -> str:
    return stage.submit(*(f"{URL}{number}" for number in range(count)))


def ended_job(stage: Stage, *, failed: bool = False) -> str:
    job_id = new_job(stage)
    if failed:
        stage.request("POST", f"/v1/jobs/{job_id}/cancel")
    stage.work()
    return job_id


def assembled_job(stage: Stage) -> str:
    job_id = ended_job(stage)
    stage.assemble()
    return job_id


def large_job(stage: Stage) -> str:
    job_id = new_job(stage)
    stage.work({f"{URL}0": Content(bytes(range(256)) * 20_000, "application/octet-stream")})
    return job_id


def send(method: str, path: str, job: Callable[[Stage], str] = lambda _: "", **values: Any) -> Callable[[Stage], Reply]:
    """One request, on a job that is made before it."""
    return lambda stage: stage.request(method, fill(path, job(stage)), **values)


def submit_twice(stage: Stage) -> Reply:
    new_job(stage)
    return stage.request("POST", "/v1/jobs", {"targets": [{"url": f"{URL}0"}]})


def submit_mismatch(stage: Stage) -> Reply:
    headers = {"idempotency-key": "k"}
    stage.request("POST", "/v1/jobs", {"targets": [{"url": URL}]}, headers=headers)
    return stage.request("POST", "/v1/jobs", {"targets": [{"url": f"{URL}2"}]}, headers=headers)


def submit_another(stage: Stage) -> Reply:
    new_job(stage)
    return stage.request("POST", "/v1/jobs", {"targets": [{"url": URL}]})


def retry_twice(stage: Stage) -> Reply:
    job_id = ended_job(stage, failed=True)
    stage.request("POST", f"/v1/jobs/{job_id}/retry")
    return stage.request("POST", f"/v1/jobs/{job_id}/retry")


def retry_while_busy(stage: Stage) -> Reply:
    job_id = ended_job(stage, failed=True)
    stage.submit(f"{URL}other")
    return stage.request("POST", f"/v1/jobs/{job_id}/retry")


def resume_paused(stage: Stage) -> Reply:
    job_id = new_job(stage)
    stage.request("POST", f"/v1/jobs/{job_id}/pause")
    return stage.request("POST", f"/v1/jobs/{job_id}/resume")


def fetch(answer: Content | Exception) -> Callable[[Stage], Reply]:
    """One target now, of which the pipeline says this."""

    class Pipeline:
        def __init__(self, settings: Any, **_: Any) -> None:
            pass

        async def run(self, *_: Any) -> Content:
            if isinstance(answer, Exception):
                raise answer
            return answer

    def case(stage: Stage) -> Reply:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sift.content.pipeline.Pipeline", Pipeline)
            return stage.request("POST", "/v1/fetch", {"url": URL})

    return case


def failed_job(stage: Stage) -> str:
    return ended_job(stage, failed=True)


GOOD = {"targets": [{"url": URL}]}
#: How each documented status of a route is had; 401, 403, 404, 500 and 503 are had alike on every route.
CASES: dict[tuple[str, str, int], Callable[[Stage], Reply]] = {
    ("GET", "/healthz", 200): send("GET", "/healthz"),
    ("GET", "/v1/jobs", 200): send("GET", "/v1/jobs", new_job),
    ("GET", "/v1/jobs", 400): send("GET", "/v1/jobs", cursor="nonsense"),
    ("GET", "/v1/jobs", 422): send("GET", "/v1/jobs", limit=0),
    ("POST", "/v1/fetch", 200): fetch(Content(b"x", "text/plain", {"status": 200})),
    ("POST", "/v1/fetch", 400): send("POST", "/v1/fetch", body="{"),
    ("POST", "/v1/fetch", 413): send("POST", "/v1/fetch", body=" " * 5_000_001),
    ("POST", "/v1/fetch", 422): send("POST", "/v1/fetch", body={"url": 7}),
    ("POST", "/v1/fetch", 502): fetch(TargetFailed("http_error", "It answered 404.", "Check the URL.", status=404)),
    ("POST", "/v1/fetch", 504): fetch(TargetFailed("timeout", "It took too long.", "Try it again later.")),
    ("POST", "/v1/jobs", 200): submit_twice,
    ("POST", "/v1/jobs", 202): send("POST", "/v1/jobs", body=GOOD),
    ("POST", "/v1/jobs", 400): send("POST", "/v1/jobs", body="{"),
    ("POST", "/v1/jobs", 409): submit_mismatch,
    ("POST", "/v1/jobs", 413): send("POST", "/v1/jobs", body=" " * 5_000_001),
    ("POST", "/v1/jobs", 422): send("POST", "/v1/jobs", body={"targets": []}),
    ("POST", "/v1/jobs", 429): submit_another,
    ("GET", JOB, 200): send("GET", JOB, new_job),
    ("GET", JOB, 422): send("GET", JOB, new_job, wait=99),
    ("DELETE", JOB, 204): send("DELETE", JOB, ended_job),
    ("DELETE", JOB, 409): send("DELETE", JOB, new_job),
    ("DELETE", JOB, 422): send("DELETE", JOB, ended_job, surprise=1),
    ("POST", f"{JOB}/cancel", 200): send("POST", f"{JOB}/cancel", new_job),
    ("POST", f"{JOB}/cancel", 409): send("POST", f"{JOB}/cancel", ended_job),
    ("POST", f"{JOB}/cancel", 422): send("POST", f"{JOB}/cancel", new_job, surprise=1),
    ("POST", f"{JOB}/pause", 200): send("POST", f"{JOB}/pause", new_job),
    ("POST", f"{JOB}/pause", 409): send("POST", f"{JOB}/pause", ended_job),
    ("POST", f"{JOB}/pause", 422): send("POST", f"{JOB}/pause", new_job, surprise=1),
    ("POST", f"{JOB}/resume", 200): resume_paused,
    ("POST", f"{JOB}/resume", 409): send("POST", f"{JOB}/resume", new_job),
    ("POST", f"{JOB}/resume", 422): send("POST", f"{JOB}/resume", new_job, surprise=1),
    ("POST", f"{JOB}/retry", 202): send("POST", f"{JOB}/retry", failed_job),
    ("POST", f"{JOB}/retry", 200): retry_twice,
    ("POST", f"{JOB}/retry", 409): send("POST", f"{JOB}/retry", new_job),
    ("POST", f"{JOB}/retry", 422): send("POST", f"{JOB}/retry", ended_job),
    ("POST", f"{JOB}/retry", 429): retry_while_busy,
    ("GET", f"{JOB}/targets", 200): send("GET", f"{JOB}/targets", ended_job),
    ("GET", f"{JOB}/targets", 400): send("GET", f"{JOB}/targets", new_job, cursor="nonsense"),
    ("GET", f"{JOB}/targets", 422): send("GET", f"{JOB}/targets", new_job, status="finished"),
    ("GET", f"{JOB}/results", 202): send("GET", f"{JOB}/results", ended_job),
    ("GET", f"{JOB}/results", 303): send("GET", f"{JOB}/results", assembled_job),
    ("GET", f"{JOB}/results", 409): send("GET", f"{JOB}/results", new_job),
    ("GET", f"{JOB}/results", 422): send("GET", f"{JOB}/results", ended_job, surprise=1),
    ("GET", TARGET, 200): send("GET", TARGET, ended_job),
    ("GET", TARGET, 422): send("GET", TARGET, ended_job, surprise=1),
    ("GET", f"{TARGET}/content", 200): send("GET", f"{TARGET}/content", ended_job),
    ("GET", f"{TARGET}/content", 303): send("GET", f"{TARGET}/content", large_job),
    ("GET", f"{TARGET}/content", 422): send("GET", f"{TARGET}/content", ended_job, surprise=1),
}
ON_EVERY_ROUTE = {401, 403, 404, 500, 503}
DOCUMENTED = {(m, p, int(status)) for m, p in ROUTES for status in DOCUMENT["paths"][p][m.lower()]["responses"]}
MODELS: dict[str, type[BaseModel]] = {
    "Fetched": Fetched, "Health": Health, "Job": Job, "JobPage": JobPage, "Target": Target, "TargetPage": TargetPage,
    "Problem": Problem,
}  # fmt: skip


def test_every_documented_status_has_a_case() -> None:
    assert {case for case in DOCUMENTED if case[2] not in ON_EVERY_ROUTE} == set(CASES)


def check(reply: Reply, method: str, path: str, status: int) -> None:
    """The answer has the documented status, media type and body."""
    assert reply.status == status, reply.raw
    content = DOCUMENT["paths"][path][method.lower()]["responses"][str(status)].get("content")
    if content is None:
        assert reply.raw == b""
        return
    ((media_type, described),) = content.items()
    if media_type != "*/*":
        assert reply.headers["content-type"] == media_type
        MODELS[described["schema"]["$ref"].rsplit("/", 1)[1]].model_validate(reply.json, strict=True)


@pytest.mark.parametrize("case", sorted(CASES), ids=str)
def test_a_documented_status(stage: Stage, case: tuple[str, str, int]) -> None:
    check(CASES[case](stage), *case)


@pytest.mark.parametrize("status", sorted(ON_EVERY_ROUTE))
def test_a_status_that_is_documented_for_every_route(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    async def unavailable(*_: object) -> None:
        raise Unavailable("the table did not answer")

    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    if status == 503:
        monkeypatch.setattr("sift.store.dynamo.DynamoStore.get_key", unavailable)
    if status == 500:
        resolver = type(stage.deployment.functions["api"].application.resolver)
        monkeypatch.setattr(resolver, "resolve", broken)
    with monkeypatch.context() as patch:
        patch.setattr("sift.services.keys.is_scope", bool)  # each scope that there is may read
        other = stage.new_key(scopes=["reports"])
    key = {401: None, 403: other}.get(status, "")
    for method, path in [route for route in ROUTES if (*route, status) in DOCUMENTED]:
        body = {"/v1/jobs": GOOD, "/v1/fetch": {"url": URL}}.get(path) if method == "POST" else None
        reply = stage.request(method, fill(path, "job_01M8MZ2A0038NKRKAYDXR834MK"), body, key=key)
        check(reply, method, path, status)
    with_key = [(m, p) for m, p in ROUTES if p != "/healthz"]
    assert {(m, p) for m, p, s in DOCUMENTED if s == 401} == set(with_key)
    for alike in (403, 503):
        assert {(m, p) for m, p, s in DOCUMENTED if s == alike} == set(with_key)


def test_the_store_is_untouched_by_what_is_refused(stage: Stage) -> None:
    before = stage.stored()
    for method, path in ROUTES:
        stage.request(method, fill(path, "job_01M8MZ2A0038NKRKAYDXR834MK"))
    assert stage.stored() == before
    assert asyncio.run(stage.store.live_jobs(0)) == []
