"""The event files are what the triggers of template.yaml send."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from sift import notices
from sift.api.firings import read_firing
from sift.api.models import FetchRequest, JobRequest
from sift.assembly import decode as decode_assembly
from sift.ids import is_job_id
from sift.messages import decode
from tests.template.document import ROOT, Template, events, functions

FILES = sorted((ROOT / "events").glob("*.json"))
API = [path for path in FILES if path.name.startswith(("api-", "fetch_now-"))]


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_is_named_after_a_function_and_explained(path: Path, template: Template) -> None:
    folders = {Path(function["CodeUri"]).name for function in functions(template).values()}
    assert path.stem.split("-")[0] in folders
    assert f"| `{path.name}` |" in (ROOT / "events" / "README.md").read_text()


def test_every_function_has_an_event(template: Template) -> None:
    folders = {Path(function["CodeUri"]).name for function in functions(template).values()}
    assert folders == {path.stem.split("-")[0] for path in FILES}


@pytest.mark.parametrize("path", API, ids=lambda path: path.stem)
def test_api_event_takes_a_route_of_the_template(path: Path, template: Template) -> None:
    event = _read(path)
    context = event["requestContext"]
    folder = path.stem.split("-")[0]
    (function,) = (found for found in functions(template).values() if Path(found["CodeUri"]).name == folder)
    routes = {f"{e['Method']} {e['Path']}" for e in events(function, "HttpApi")}
    assert event["version"] == "2.0"
    assert event["routeKey"] == context["routeKey"]
    assert event["routeKey"] in routes
    assert (context["http"]["method"], context["stage"]) == (event["routeKey"].split()[0], "$default")
    assert context["http"]["path"] == event["rawPath"]
    filled = re.sub(r"\{(\w+)\}", lambda m: event["pathParameters"][m[1]], event["routeKey"].split()[1])
    assert filled == event["rawPath"]
    assert dict(parse_qsl(event["rawQueryString"])) == event.get("queryStringParameters", {})
    if "pathParameters" in event:
        assert is_job_id(event["pathParameters"]["id"])
    if "body" in event:
        assert int(event["headers"]["content-length"]) == len(event["body"].encode())
        model = {"api": JobRequest, "fetch_now": FetchRequest}[folder]
        assert model.model_validate_json(event["body"])


@pytest.mark.parametrize("kind", ["fetch", "inference"])
def test_batch_holds_targets_and_one_message_that_is_none(kind: str) -> None:
    *sound, broken = _read(ROOT / "events" / f"{kind}-batch.json")["Records"]
    messages = [decode(record["body"]) for record in sound]
    assert [(message.kind, message.index) for message in messages] == [(kind, 0), (kind, 1)]
    assert all(is_job_id(message.job_id) for message in messages)
    for record, message in zip(sound, messages, strict=True):
        assert record["attributes"]["MessageGroupId"] == message.job_id
    with pytest.raises(ValueError, match=r"not a target message"):
        decode(broken["body"])
    for record in [*sound, broken]:
        assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest()


def test_a_results_file_is_asked_for_by_the_id_of_its_job() -> None:
    (record,) = _read(ROOT / "events" / "assemble-job.json")["Records"]
    assert decode_assembly(record["body"]).job_id == record["attributes"]["MessageGroupId"]
    assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest()


def test_firings_are_read() -> None:
    requests = [
        read_firing(_read(ROOT / "events" / f"{name}.json"), lambda url: None)
        for name in ("schedule-batch", "schedule-timer")
    ]
    assert [len(request.targets) for request in requests] == [2, 1]
    assert requests[0].idempotency_key == "event 7bf73129-1428-4cd3-a780-95db273d1602"
    assert str(requests[1].idempotency_key).startswith("schedule 2026-11-30T06:00:00Z arn:aws:scheduler:")


def test_notices_and_one_message_that_is_none() -> None:
    *sound, broken = _read(ROOT / "events" / "notify-batch.json")["Records"]
    assert [notices.decode(record["body"]).event for record in sound] == ["job.ended", "target.failed"]
    with pytest.raises(ValueError, match=r"not a notice"):
        notices.decode(broken["body"])
    for record in [*sound, broken]:
        assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest()


def test_tick_comes_from_a_schedule() -> None:
    event = _read(ROOT / "events" / "sweep-schedule.json")
    assert (event["source"], event["detail-type"], event["detail"]) == ("aws.events", "Scheduled Event", {})
