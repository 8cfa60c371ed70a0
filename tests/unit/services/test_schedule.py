"""Events and schedules: what they submit as whom, what is refused, and that a firing is one job."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sift.api.firings import read_firing, reason
from sift.errors import CallerBusy, Forbidden, Invalid, RequestRefused, TargetFailed
from sift.services.schedule import Scheduler
from sift.services.submit import Submitted
from tests.unit.services.world import HOUR, World

BATCH = {"targets": [{"url": "https://example.com/"}]}
TIMER = "arn:aws:scheduler:eu-west-1:123456789012:schedule/default/nightly"


def requested(event_id: str = "event-1", **batch: Any) -> dict[str, Any]:
    return {"id": event_id, "detail-type": "Sift Batch Requested", "source": "acme", "detail": {**BATCH, **batch}}


def timed(time: str = "2026-11-30T06:00:00Z", **more: Any) -> dict[str, Any]:
    return {"scheduled_time": time, "schedule": TIMER, "batch": BATCH, **more}


def allow(url: str) -> None:
    """Every webhook may be posted to."""


def fire(world: World, event: Any, key_id: str | None = None) -> Submitted:
    """One delivery to a process of its own."""
    chosen = key_id if key_id is not None else make_key(world)
    scheduler = Scheduler(world.store, world.submitter, world.clock, chosen)
    return asyncio.run(scheduler.submit(read_firing(event, allow)))


def make_key(world: World, **values: Any) -> str:
    held = [key_id for key_id, record in world.store.keys.items() if record.identity.actor == "timer"]
    if held and not values:
        return held[0]
    key = asyncio.run(world.keys.create(tenant="acme", **{"actor": "timer", "events": True, **values}))
    return key.split("_")[1]


@pytest.mark.parametrize("event", [requested(), timed()])
def test_a_firing_is_one_job_of_the_operators_key(world: World, event: dict[str, Any]) -> None:
    made = fire(world, event)
    assert made.meta.caller == "acme/timer"
    assert made.meta.identity["auth_type"] == "event"
    again = fire(world, event)
    assert (again.meta.job_id, again.reused) == (made.meta.job_id, True)
    assert len(world.store.metas) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (requested("event-1"), requested("event-2")),
        (timed(), timed("2026-12-01T06:00:00Z")),
        (timed(), timed(schedule=f"{TIMER}-2")),
        (timed(), timed(schedule="event-1") | requested("2026-11-30T06:00:00Z")),
    ],
)
def test_the_next_firing_is_another_job(world: World, first: dict[str, Any], second: dict[str, Any]) -> None:
    one, other = fire(world, first), fire(world, second)
    assert not other.reused
    assert one.meta.job_id != other.meta.job_id


def test_fresh_does_not_make_two_jobs_of_one_firing(world: World) -> None:
    assert fire(world, requested(fresh=True)).meta.job_id == fire(world, requested(fresh=True)).meta.job_id


def test_a_firing_whose_job_has_failed_is_still_that_job(world: World) -> None:
    made = fire(world, requested())
    world.site.answers["https://example.com/"] = [TargetFailed("http_error", "It answered 404.")]
    asyncio.run(world.run_on())
    assert world.state(made).status == "failed"
    assert fire(world, requested()).meta.job_id == made.meta.job_id


def test_the_same_id_with_another_batch_is_a_conflict(world: World) -> None:
    fire(world, requested())
    with pytest.raises(RequestRefused) as refused:
        fire(world, requested(window=1, targets=[{"url": "https://example.com/other"}]))
    assert refused.value.code == "idempotency_mismatch"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"events": False}, "is not for events"),
        ({"scopes": ("inference",)}, "needs the scope fetch"),
        ({"scopes": ("admin",)}, "needs the scope fetch"),
    ],
)
def test_a_key_that_is_not_for_this_submits_nothing(world: World, values: dict[str, Any], words: str) -> None:
    with pytest.raises(Forbidden, match=words):
        fire(world, requested(), make_key(world, **values))
    assert not world.store.metas


def test_without_a_key_no_event_is_taken(world: World) -> None:
    for key_id, words in (("", "takes no events"), ("00000000000f", "names no key")):
        with pytest.raises(Forbidden, match=words):
            fire(world, requested(), key_id)


def test_a_key_that_is_over_submits_nothing_from_then_on(world: World) -> None:
    expires = make_key(world, actor="soon", expires_at=world.clock.now // 1000 + 3_600)
    revoked = make_key(world, actor="never")
    fire(world, requested(), expires)
    fire(world, requested(), revoked)
    asyncio.run(world.keys.revoke(revoked))
    world.clock.now += HOUR
    with pytest.raises(Forbidden, match="has expired"):
        fire(world, requested("event-2"), expires)
    with pytest.raises(Forbidden, match="is revoked"):
        fire(world, requested("event-2"), revoked)


def test_an_event_names_no_key_and_no_caller(world: World) -> None:
    with pytest.raises(Invalid) as refused:
        fire(world, requested(key_id="00000000000f"))
    assert refused.value.code == "invalid_request"
    other = {**requested(), "account": "999999999999", "key_id": "00000000000f", "tenant": "other"}
    assert fire(world, other).meta.caller == "acme/timer"


def test_a_cap_is_a_passing_refusal_with_its_code(world: World) -> None:
    key_id = make_key(world, limits={"jobs_per_caller": 1})
    fire(world, requested(), key_id)
    with pytest.raises(CallerBusy) as refused:
        fire(world, requested("event-2"), key_id)
    assert reason(refused.value).startswith("caller_busy: 1 jobs")


PLANTED = "s3cr3t-of-others"
BAD: list[tuple[Any, str]] = [
    (None, "bad_event: The event is not an object."),
    ([], "bad_event: The event is not an object."),
    ({}, "bad_event: The event has neither a detail-type nor a scheduled_time."),
    ({"detail-type": PLANTED, "id": "1", "detail": BATCH}, "bad_event: The event's detail-type"),
    (requested("") , "bad_event: The event's id"),
    (requested("x" * 200), "bad_event: The event's id"),
    ({**requested(), "detail": PLANTED}, "bad_event: The batch is not an object."),
    ({**requested(), "detail": None}, "bad_event: The batch is not an object."),
    ({**requested(), "detail": {}}, "no_targets: targets"),
    (requested(targets=[]), "no_targets: targets"),
    (requested(targets=[{"url": f"ftp://{PLANTED}"}]), "invalid_target: targets.0.url"),
    (requested(targets=[{"url": "https://example.com/", PLANTED: 1}]), "invalid_target: a field"),
    (requested(options={"mode": PLANTED}), "unsupported_option: options.mode"),
    (requested(options={"headers": {PLANTED: "x"}}), "unsupported_option: options.headers"),
    (requested(webhook={"url": f"http://{PLANTED}:x"}), "invalid_webhook: webhook.url"),
    (requested(webhook={"url": "https://a.de/", "headers": {"cookie": PLANTED}}), "invalid_webhook: webhook.headers"),
    (requested(requests=[]), "invalid_request: requests: not together"),
    (timed("<aws.scheduler.scheduled-time>"), "bad_event: scheduled_time is not a time"),
    (timed(PLANTED), "bad_event: scheduled_time is not a time"),
    (timed(batch=PLANTED), "bad_event: The batch is not an object."),
    (timed(schedule=7), "bad_event: The event's schedule"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "words"), BAD, ids=lambda value: value[:60] if isinstance(value, str) else "event")
def test_what_is_no_batch_has_its_reason_and_nothing_of_others(event: Any, words: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        read_firing(json.loads(json.dumps(event)), allow)
    told = reason(refused.value)
    assert told.startswith(words)
    assert PLANTED not in told


def test_a_webhook_of_an_event_is_checked_as_any() -> None:
    def refuse(url: str) -> None:
        raise TargetFailed("blocked_address", "The address is not allowed.")

    with pytest.raises(Invalid) as refused:
        read_firing(requested(webhook={"url": "http://10.0.0.1/"}), refuse)
    assert reason(refused.value) == "blocked_address: webhook.url"
