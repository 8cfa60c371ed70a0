"""docs/openapi.json says what the API does: requests made from it, right and wrong, get the answers that it has."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sift.errors import TARGET_CODES, TargetBusy, TargetFailed
from sift.targets import Content, FetchOptions
from tests.integration.api.gateway import Gateway
from tests.integration.api.stage import NOT_THERE, ROOT, Stage

DOCUMENT = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
OPERATIONS = [(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item]
NAMES = [" ".join(operation) for operation in OPERATIONS]
CHECKS = [
    content_type_conformance, negative_data_rejection, response_headers_conformance, response_schema_conformance,
    status_code_conformance,
]  # fmt: skip
EXAMPLES = 15
URL = "https://example.com/"


class Answering:
    """In place of the pipeline: half of the targets end well, the others in every way there is."""

    def __init__(self, settings: Any, **rest: Any) -> None:
        pass

    async def run(self, url: str, options: FetchOptions, deadline_s: float) -> Content:
        codes: list[str | None] = ["busy", *sorted(TARGET_CODES)]
        codes += [None] * len(codes)
        match codes[zlib.crc32(f"{url} {options!r}".encode("utf-8", "replace")) % len(codes)]:
            case None:
                return Content(url.encode("utf-8", "replace"), "text/plain; charset=utf-8", {"status": 200})
            case "busy":
                raise TargetBusy("It answered 429.", status=429)
            case code:
                raise TargetFailed(code, "It failed.", "Leave it.")


@pytest.fixture
def jobs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs of the caller: one that is over, one that failed, one paused, one that waits. There is room for others."""
    monkeypatch.setattr("sift.content.pipeline.Pipeline", Answering)
    monkeypatch.setenv("JOBS_TOTAL", "10000")
    stage.key = stage.new_key(limits={"jobs_per_caller": 1000, "retained_jobs": 100_000})
    ended = [stage.submit(f"{URL}1", f"{URL}2"), stage.submit(f"{URL}3")]
    stage.work({f"{URL}2": NOT_THERE, f"{URL}3": NOT_THERE})
    live = [stage.submit(f"{URL}4"), stage.submit(f"{URL}5")]
    assert stage.request("POST", f"/v1/jobs/{live[0]}/pause").status == 200
    return [*ended, *live]


def can_be_wrong(method: str, path: str) -> bool:
    """Whether there is anything to send that is not of its type: any text may be a job's id."""
    operation = DOCUMENT["paths"][path][method.lower()]
    return "requestBody" in operation or any(one["name"] != "job_id" for one in operation.get("parameters", []))


CASES = [
    pytest.param(mode, *operation, id=f"{mode.value} {name}")
    for operation, name in zip(OPERATIONS, NAMES, strict=True)
    for mode in schemathesis.GenerationMode
    if mode.is_positive or can_be_wrong(*operation)
]


@pytest.mark.parametrize(("mode", "method", "path"), CASES)
def test_answers_are_those_of_the_document(
    stage: Stage, jobs: list[str], mode: schemathesis.GenerationMode, method: str, path: str
) -> None:
    schema = schemathesis.openapi.from_wsgi("/openapi.json", Gateway(stage))
    schema.config.generation.update(with_security_parameters=False)  # the key is ours
    operation = schema[path][method]
    statuses: set[int] = set()

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(
        case=operation.as_strategy(generation_mode=mode),
        job_id=st.sampled_from([*jobs, None]),
        index=st.sampled_from([0, 1, None]),
    )
    def check(case: Any, job_id: str | None, index: int | None) -> None:
        # No schema makes up a job that is there, a part that a text has, or a URL that may be fetched.
        for name, value in (("job_id", job_id), ("index", index)):
            if value is not None and name in case.path_parameters:
                case.path_parameters[name] = value
        if mode.is_positive and index == 0:
            case.query.clear()
        if mode.is_positive and index == 0 and isinstance(case.body, dict):
            case.body.pop("requests", None)  # not together with targets, and of no use without a gateway
            case.body.pop("webhook", None)  # an address that may be posted to, and a secret
        if mode.is_positive and index is not None and isinstance(case.body, dict):
            if index == 0 and path == "/v1/jobs":  # a job that has targets and no requests is rarely drawn
                case.body.pop("requests", None)
                case.body.pop("options", None)
                case.body["targets"] = case.body.get("targets") or [{"url": URL}]
            for number, target in enumerate([case.body, *case.body.get("targets", [])]):
                if "url" in target:
                    target["url"] = f"{URL}{number}"
                if index == 0:  # which options go together is in no schema
                    target.pop("options", None)
        if "wait" in (case.query or {}):
            case.query["wait"] = 0  # else it does
        answer = case.call(headers={"authorization": f"Bearer {stage.key}"})
        case.validate_response(answer, checks=CHECKS)
        statuses.add(answer.status_code)
        # A target's own error is the answer's (docs/api.md).
        assert answer.status_code < 500 or (path == "/v1/fetch" and answer.json()["code"] in TARGET_CODES)

    check()
    if mode.is_positive:
        # Which options go together is in no schema: one target at once with all of them is rarely taken.
        assert min(statuses) < 300 or path == "/v1/fetch"
    else:
        assert max(statuses) >= 400


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=NAMES)
def test_without_a_key_the_answer_is_in_the_document_too(stage: Stage, method: str, path: str) -> None:
    case = schemathesis.openapi.from_wsgi("/openapi.json", Gateway(stage))[path][method].Case(
        path_parameters={"job_id": "job_0", "index": 0}, headers={}
    )
    answer = case.call()
    case.validate_response(answer, checks=[content_type_conformance, status_code_conformance])
    assert answer.status_code == (200 if path == "/healthz" else 401)
