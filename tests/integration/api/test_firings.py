"""Events and schedules, handed to their function as Lambda does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sift.clock import SystemClock
from sift.errors import Unavailable
from sift.loglines import Failed
from sift.services.keys import KeyService
from sift.store.dynamo import DynamoStore
from tests.integration.api.stage import Stage, read_event
from tests.integration.api.test_functions import fire_event

PLANTED = "planted-s3cret"
BATCH, TIMER = read_event("schedule-batch"), read_event("schedule-timer")


@pytest.fixture
def timer(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> str:
    """The key of a caller whose events are taken."""
    key = stage.new_key("timer", events=True)
    monkeypatch.setenv("EVENT_KEY_ID", key.split("_")[1])
    return key


@pytest.mark.parametrize("name", ["schedule-batch", "schedule-timer"])
def test_a_firing_delivered_twice_is_one_job(stage: Stage, timer: str, name: str) -> None:
    event = read_event(name)
    first, again = fire_event(stage, event), fire_event(stage, event)
    assert (first["reused"], again) == (False, {**first, "reused": True})
    job = stage.request("GET", f"/v1/jobs/{first['job_id']}", key=timer).json
    assert (job["actor"], job["status"]) == ("timer", "queued")
    assert job["counts"]["total"] == len((event.get("detail") or event["batch"])["targets"])
    later = {**event, "id": "another"} if "id" in event else {**event, "scheduled_time": "2026-12-01T06:00:00Z"}
    stage.request("POST", f"/v1/jobs/{first['job_id']}/cancel", key=timer)
    assert fire_event(stage, later)["job_id"] != first["job_id"]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({**BATCH, "detail": {"targets": [{"url": f"ftp://{PLANTED}"}]}}, "invalid_target: targets.0.url"),
        ({**BATCH, "detail-type": PLANTED}, "bad_event: The event's detail-type"),
        ({PLANTED: PLANTED}, "bad_event: The event has neither"),
        ([PLANTED], "bad_event: The event is not an object"),
        ({**TIMER, "scheduled_time": "<aws.scheduler.scheduled-time>"}, "bad_event: scheduled_time"),
    ],
)  # fmt: skip
def test_what_is_no_batch_fails_with_its_reason(
    stage: Stage, timer: str, capfd: pytest.CaptureFixture[str], event: Any, words: str
) -> None:
    before = stage.stored()
    with pytest.raises(Failed) as failed:
        fire_event(stage, event)
    assert str(failed.value).startswith(words)
    assert stage.stored() == before
    assert PLANTED not in str(failed.value)
    assert PLANTED not in "".join(capfd.readouterr())


def test_only_the_operators_key_is_used(stage: Stage, timer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    event = read_event("schedule-batch")
    asyncio.run(KeyService(stage.store, SystemClock()).revoke(timer.split("_")[1]))
    with pytest.raises(Failed, match="forbidden: The key of EventKeyId is revoked"):
        fire_event(stage, event)


@pytest.mark.parametrize(("key", "words"), [("", "takes no events"), (None, "is not for events")])
def test_without_such_a_key_nothing_is_submitted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, key: str | None, words: str
) -> None:
    monkeypatch.setenv("EVENT_KEY_ID", stage.key.split("_")[1] if key is None else key)
    with pytest.raises(Failed, match=f"forbidden: .*{words}"):
        fire_event(stage, read_event("schedule-batch"))


def test_a_cap_and_a_table_that_is_away_are_passing(stage: Stage, timer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    event = read_event("schedule-batch")
    made = fire_event(stage, event)
    with pytest.raises(Failed, match="caller_busy"):
        fire_event(stage, {**event, "id": "another"})

    async def away(self: DynamoStore, key_id: str) -> Any:
        raise Unavailable("get_key: InternalServerError")

    with monkeypatch.context() as patched:
        patched.setattr(DynamoStore, "get_key", away)
        with pytest.raises(Failed, match="get_key"):
            fire_event(stage, event)
    assert fire_event(stage, event) == {**made, "reused": True}
