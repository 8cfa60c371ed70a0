"""What a caller sees when a part of sift does not work: a problem, and nothing of the inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sift import bootstrap
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
    with_table = bootstrap._client
    monkeypatch.setattr("sift.bootstrap._client", with_table.__wrapped__)
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
    bootstrap.api.cache_clear()
    reply = stage.request("POST", "/v1/jobs", GOOD)
    assert (reply.status, reply.code) == (500, "internal")
    assert "JOBS_TOTAL" not in reply.raw.decode()


@pytest.mark.parametrize(
    "event", [{}, {"rawPath": None}, {"rawPath": "/v1/jobs", "headers": None}, {"requestContext": {}}]
)
def test_an_event_that_is_none_is_answered(stage: Stage, event: Mapping[str, Any]) -> None:
    assert stage.send(dict(event)).status in {401, 500}
