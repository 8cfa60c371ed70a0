"""Webhooks: which notices are put on their queue, and what that costs a job."""

from __future__ import annotations

from typing import Any

import pytest

from sift.errors import Invalid
from sift.notices import decode
from tests.unit.services.faults import Fault, at
from tests.unit.services.hooked import ALL, NOT_THERE, Hooked, awaited, webhook
from tests.unit.services.world import ANN, urls


@awaited
async def test_a_job_without_a_webhook_costs_nothing(hooked: Hooked) -> None:
    world = hooked.world
    life = world.restart()
    await world.submit(3)
    await world.drain()
    assert not world.notices.waiting
    assert not [call for call in life.calls if "notices" in call or "deliveries" in call or "secrets" in call]


@awaited
async def test_a_start_is_said_once(hooked: Hooked) -> None:
    world = hooked.world
    await world.submit(40, webhook=webhook("job.started"))
    await world.drain()
    assert [decode(message.body).event for message in world.notices.waiting.values()] == ["job.started"]


@awaited
async def test_a_slow_receiver_does_not_slow_the_job(hooked: Hooked) -> None:
    world = hooked.world
    job = await world.submit(3, webhook=webhook(*ALL))
    await world.drain()  # nobody posts anything
    world.check(job.meta.job_id, ["done"] * 3)


@pytest.mark.parametrize("fault", [Fault.REQUEST_LOST, Fault.ANSWER_LOST, Fault.DEATH_BEFORE, Fault.DEATH_AFTER])
@awaited
async def test_the_end_is_on_the_queue_whatever_happens(hooked: Hooked, fault: Fault) -> None:
    world = hooked.world
    job = await world.submit(1, webhook=webhook())
    world.restart(at("notices.send", fault))
    await world.run_on()
    assert not any(world.store.outboxes.values())
    events = [decode(message.body) for message in world.notices.waiting.values()]
    assert {(event.job_id, event.event) for event in events} == {(job.meta.job_id, "job.ended")}
    assert len({event.message_id for event in events}) == 1, "the receiver can tell repetitions"


@awaited
async def test_a_queue_that_takes_nothing_keeps_the_end_in_the_outbox(hooked: Hooked) -> None:
    world = hooked.world
    job = await world.submit(1, webhook=webhook())

    async def refuse(messages: Any) -> int:
        return 0

    send, world.notices.send = world.notices.send, refuse  # type: ignore[method-assign]
    await world.drain()
    assert job.meta.job_id in world.store.outboxes[job.meta.shard]
    world.notices.send = send  # type: ignore[method-assign]
    await world.sweep()
    assert not world.store.outboxes[job.meta.shard]
    assert len(world.notices.waiting) == 1


@awaited
async def test_a_lost_notice_of_a_target_costs_nothing_else(hooked: Hooked) -> None:
    world = hooked.world
    job = await world.submit(1, webhook=webhook("target.done"))
    world.restart(at("notices.send", Fault.REQUEST_LOST))
    await world.run_on()
    world.check(job.meta.job_id, ["done"])


@awaited
async def test_a_notice_that_nobody_could_foresee_to_fail_costs_no_target(
    hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = hooked.world
    job = await world.submit(1, webhook=webhook("job.started", "target.done"))

    async def refused(messages: Any) -> int:
        raise PermissionError("no such queue, or not allowed")

    monkeypatch.setattr(world.notices, "send", refused)
    await world.drain()
    world.check(job.meta.job_id, ["done"])


@awaited
async def test_without_a_secret_a_webhook_is_refused(hooked: Hooked) -> None:
    world = hooked.world
    world.store.secrets.clear()
    before = world.contents()
    with pytest.raises(Invalid) as refused:
        await world.submit(1, webhook=webhook())
    assert refused.value.code == "no_webhook_secret"
    assert world.contents() == before


@awaited
async def test_the_same_work_with_another_webhook_is_other_work(hooked: Hooked) -> None:
    world = hooked.world
    plain = await world.submit(1)
    one = await world.submit(1, webhook=webhook())
    same = await world.submit(1, webhook=webhook())
    other = await world.submit(1, webhook=webhook("target.done"))
    assert len({plain.meta.job_id, one.meta.job_id, other.meta.job_id}) == 3
    assert same.reused
    assert same.meta.job_id == one.meta.job_id


@awaited
async def test_a_retry_posts_as_its_job_did(hooked: Hooked) -> None:
    world = hooked.world
    world.site.answers[urls(1)[0]] = [NOT_THERE]
    job = await world.submit(1, webhook=webhook("target.failed"))
    await world.drain()
    again = await world.retrier.retry(ANN, job.meta.job_id)
    assert again.meta.webhook == job.meta.webhook
    assert again.state.notify == job.state.notify
