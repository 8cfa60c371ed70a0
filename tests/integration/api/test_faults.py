"""What a caller sees when a part of sift does not work: a problem, and nothing of the inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from sift import environment, metrics
from sift.api import application
from sift.bootstrap import callers
from sift.errors import Unavailable
from tests.integration.api.stage import Stage, read_event

URL = "https://example.com/"
GOOD = {"targets": [{"url": URL}]}


# faults


def test_a_table_that_is_gone(stage: Stage) -> None:
    """A key that was seen before is still known; what it asks for is unavailable or fails inside, and says no more."""
    job_id = stage.submit(URL)
    stage.deployment.client("dynamodb").delete_table(TableName=stage.table)
    for method, path, body in (("POST", "/v1/jobs", GOOD), ("GET", f"/v1/jobs/{job_id}", None)):
        reply = stage.request(method, path, body)
        assert (reply.status, reply.code) in {(503, "unavailable"), (500, "internal")}
        assert stage.table not in reply.raw.decode()
    reply = stage.request("GET", f"/v1/jobs/{job_id}", key=f"sift_{'0' * 12}_{'0' * 64}")
    assert reply.status in {500, 503}


class Broken:
    """A service of the API of which nothing works."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


def test_a_table_that_does_not_answer(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = stage.submit(URL)
    # Port 9 of this machine: nobody listens.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("sift.environment.client", environment.client.__wrapped__)
    for method, path, body in (("POST", "/v1/jobs", GOOD), ("GET", f"/v1/jobs/{job_id}", None)):
        reply = stage.request(method, path, body)
        assert (reply.status, reply.code) == (503, "unavailable")
        assert int(reply.headers["retry-after"]) > 0
        assert "127.0.0.1" not in reply.raw.decode()


@pytest.mark.parametrize(
    "error", [RuntimeError("secret of /a/private/path"), KeyError("secret"), RecursionError("secret")]
)
def test_a_fault_inside_shows_nothing_of_itself(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for name in ("submit.Submitter.submit", "read.Reader.wait", "keys.KeyService.authenticate"):
        with monkeypatch.context() as patch:
            module, kind, method = name.split(".")
            patch.setattr(f"sift.services.{module}.{kind}.{method}", Broken(error).__getattr__)
            for verb, path, body in (("POST", "/v1/jobs", GOOD), ("GET", "/v1/jobs/x", None)):
                reply = stage.request(verb, path, body)
                if reply.status == 404 or reply.status == 202:
                    continue  # the one that works
                assert (reply.status, reply.code) == (500, "internal")
                assert "secret" not in reply.raw.decode()
                assert reply.json["request_id"] == read_event("api-submit")["requestContext"]["requestId"]


def test_a_missing_setting_is_internal_and_not_shown(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBS_TOTAL")
    callers.api.cache_clear()
    reply = stage.request("POST", "/v1/jobs", GOOD)
    assert (reply.status, reply.code) == (500, "internal")
    assert "JOBS_TOTAL" not in reply.raw.decode()


@pytest.mark.parametrize(
    "event", [{}, {"rawPath": None}, {"rawPath": "/v1/jobs", "headers": None}, {"requestContext": {}}]
)
def test_an_event_that_is_none_is_answered(stage: Stage, event: Mapping[str, Any]) -> None:
    assert stage.send(dict(event)).status in {401, 500}


@pytest.mark.parametrize(
    "event", [{"rawPath": None}, {"rawPath": 7}, {"requestContext": "none"}, {"headers": []}, {"body": 7}]
)
def test_an_event_that_is_none_is_answered_to_whoever_has_a_key(stage: Stage, event: Mapping[str, Any]) -> None:
    right = {**read_event("api-submit"), "headers": {"x-api-key": stage.key}}
    assert stage.send({**right, **event}).status in {401, 422, 500}


def test_an_answer_that_is_no_problem_document_goes_out_as_it_is(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for body in ("", "not JSON", "[]", "{}", '{"code": 7}', None):
        answer = {"statusCode": 405, "headers": {}, "body": body, "isBase64Encoded": False}
        monkeypatch.setattr(application.Application, "_handle", lambda *_, answer=answer: answer)
        assert stage.request("GET", "/v1/jobs").status == 405


# what is counted of them


def counted(out: str) -> list[tuple[str, str]]:
    """Function's measurements of request faults: namespace and code of each."""
    lines = [json.loads(line) for line in out.splitlines() if '"_aws"' in line]
    return [
        (line["_aws"]["CloudWatchMetrics"][0]["Namespace"], line["code"])
        for line in lines
        if metrics.REQUEST_FAULTS.name in line and {"service", "code"} <= set(line)
    ]


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/fetch"], ids=["api", "fetch now"])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(RuntimeError("x"), 500, "internal"), (Unavailable("x"), 503, "unavailable")],
    ids=["internal", "unavailable"],
)
def test_a_fault_is_counted(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    path: str,
    error: Exception,
    status: int,
    code: str,
) -> None:
    """Lambda sees an answer, and no error: without this metric nobody would hear of it."""
    monkeypatch.setattr("sift.services.keys.KeyService.authenticate", Broken(error).__getattr__)
    assert stage.request("POST", path, {"url": URL}).status == status
    assert counted(capsys.readouterr().out) == [(stage.environ["POWERTOOLS_METRICS_NAMESPACE"], code)]


def test_a_wrong_setting_is_counted_and_a_refusal_is_not(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stage.request("POST", "/v1/jobs", {"targets": []}).status == 422
    assert stage.request("GET", "/v1/jobs", key=None).status == 401
    assert counted(capsys.readouterr().out) == []
    monkeypatch.delenv("JOBS_TOTAL")
    callers.api.cache_clear()
    assert stage.request("POST", "/v1/jobs", GOOD).status == 500
    assert [code for _, code in counted(capsys.readouterr().out)] == ["internal"]
