"""Webhooks: what becomes of posts that fail, and of receivers that are away."""

from __future__ import annotations

from typing import Any

import pytest

from sift.errors import TargetBusy, TargetFailed, Unavailable
from sift.notices import Notice, decode
from sift.services.notify import FIRST_WAIT, GIVE_UP_MS, MOST_WAIT, Notifier, post_wait
from sift.services.webhook_secrets import WebhookSecrets
from sift.webhooks import Delivery
from tests.unit.services.hooked import ALL, Answer, Hooked, awaited, webhook
from tests.unit.services.world import BOB, HOUR


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (Answer(500), 500, "http_error"), (Answer(404), 404, "http_error"), (Answer(302), 302, "redirected"),
        (TargetFailed("timeout", "late"), None, "timeout"), (TargetFailed("dns_failed", "none"), None, "dns_failed"),
        (TargetBusy("refused"), None, "connect_failed"),
    ],
)  # fmt: skip
@awaited
async def test_a_post_is_repeated_for_a_day_and_then_a_dead_letter(
    hooked: Hooked, answer: Answer | Exception, status: int | None, code: str
) -> None:
    world = hooked.world
    hooked.receiver.answers = [answer]
    job = await world.submit(1, webhook=webhook())
    await world.drain()
    began = world.clock.now
    assert len(await hooked.post()) == 1
    assert hooked.delivery(job.meta.job_id) == Delivery("retrying", status, code)
    await hooked.post_on()
    assert GIVE_UP_MS - 2 * HOUR < world.clock.now - began <= GIVE_UP_MS
    assert 30 < len(hooked.receiver.posts) < 50
    assert len({body for _, _, body in hooked.receiver.posts}) == 1, "every try says the same"
    assert len({headers["webhook-id"] for _, headers, _ in hooked.receiver.posts}) == 1
    ((body, reason),) = hooked.dead.buried
    assert decode(body).event == "job.ended"
    assert code in reason
    assert hooked.delivery(job.meta.job_id) == Delivery("failed", status, code)


@awaited
async def test_a_receiver_that_comes_back_gets_it(hooked: Hooked) -> None:
    world = hooked.world
    hooked.receiver.answers = [Answer(500), TargetBusy("refused"), Answer(200)]
    job = await world.submit(1, webhook=webhook())
    await world.drain()
    await hooked.post_on()
    assert len(hooked.receiver.posts) == 3
    assert hooked.delivery(job.meta.job_id) == Delivery("delivered", 200)
    assert not hooked.dead.buried


@awaited
async def test_gone_stops_at_once_and_for_all_events_of_the_job(hooked: Hooked) -> None:
    world = hooked.world
    hooked.receiver.answers = [Answer(410)]
    job = await world.submit(1, webhook=webhook(*ALL))
    await world.deliver()
    await hooked.post_on()
    assert hooked.delivery(job.meta.job_id) == Delivery("failed", 410, "gone")
    assert not hooked.dead.buried
    posted = len(hooked.receiver.posts)
    await world.notices.send([Notice(job.meta.job_id, "target.done", world.clock.now, 7)])
    await hooked.post_on()
    assert len(hooked.receiver.posts) == posted


@pytest.mark.parametrize("code", ["blocked_address", "invalid_url"])
@awaited
async def test_an_address_that_is_not_allowed_is_given_up_at_once(hooked: Hooked, code: str) -> None:
    world = hooked.world
    hooked.receiver.answers = [TargetFailed(code, "The address is not allowed.")]
    job = await world.submit(1, webhook=webhook())
    await world.drain()
    assert await hooked.post() == []
    assert hooked.delivery(job.meta.job_id) == Delivery("failed", None, code)
    assert [reason for _, reason in hooked.dead.buried] == [code]


@awaited
async def test_one_that_was_given_up_is_not_covered_by_the_next(hooked: Hooked) -> None:
    world = hooked.world
    job = await world.submit(1, webhook=webhook())
    await world.store.note_delivery(job.meta.job_id, Delivery("failed", 500, "http_error"), None)
    await world.drain()
    await hooked.post()
    assert hooked.delivery(job.meta.job_id) == Delivery("failed", 500, "http_error")


@awaited
async def test_a_table_that_is_away_costs_only_time(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    world = hooked.world
    await world.submit(1, webhook=webhook())
    await world.drain()

    async def away(job_id: str) -> Any:
        raise Unavailable("get_job")

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "get_job", away)
        assert len(await hooked.post()) == 1
    await hooked.post_on()
    assert len(hooked.receiver.posts) == 1


@awaited
async def test_a_fault_of_one_post_is_not_its_batch_mates(hooked: Hooked) -> None:
    world = hooked.world
    hooked.receiver.answers = [RuntimeError("a fault"), Answer(200)]
    for _ in range(2):
        await world.submit(1, webhook=webhook(), fresh=True)
    await world.drain()
    assert len(await hooked.post()) == 1
    await hooked.post_on()
    assert len(hooked.receiver.posts) == 3


@awaited
async def test_a_receiver_that_is_away_costs_one_write(hooked: Hooked) -> None:
    world = hooked.world
    life = world.restart()
    store = life.wrap("store", world.store)
    hooked.receiver.answers = [Answer(500)]
    hooked.notifier = Notifier(
        store=store, queue=world.notices, dead_letters=hooked.dead, poster=hooked.receiver, clock=world.clock
    )
    await world.submit(1, webhook=webhook())
    await world.drain()
    await hooked.post_on()
    assert life.calls.count("store.note_delivery") == 2, "that it is retried, and that it was given up"


def test_waits_grow_and_heed_the_receiver() -> None:
    waits = [post_wait(attempts, None, 0.5) for attempts in range(1, 40)]
    assert waits[0] == FIRST_WAIT
    assert waits[1] == 2 * FIRST_WAIT
    assert waits == sorted(waits)
    assert waits[-1] == MOST_WAIT
    assert post_wait(1, 120, 0.5) == 120
    assert post_wait(1, 10**6, 0.5) == MOST_WAIT, "a receiver can't put it off for ever"
    assert post_wait(3, None, 0.0) < post_wait(3, None, 1.0)


@awaited
async def test_a_long_outage_of_the_table_does_not_use_up_the_receives(
    hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 1,000 of them the queue itself would move the notice, and its job would not say so."""
    world = hooked.world
    await world.submit(1, webhook=webhook())
    await world.drain()
    over = world.clock.now + 12 * HOUR

    async def away(caller: str) -> Any:
        if world.clock.now < over:
            raise Unavailable("get_secrets")
        return await get_secrets(caller)

    get_secrets = world.store.get_secrets
    monkeypatch.setattr(world.store, "get_secrets", away)
    (message,) = world.notices.waiting.values()
    await hooked.post_on()
    assert message.receives < 100
    assert len(hooked.receiver.posts) == 1


@awaited
async def test_a_receiver_that_is_away_is_not_asked_for_each_notice(hooked: Hooked) -> None:
    """Posts that wait for a time-out hold the places of the posts of others."""
    world = hooked.world
    hooked.receiver.answers = [TargetFailed("timeout", "late")]
    job = await world.submit(100, webhook=webhook("target.done"))
    await world.drain()
    began = world.clock.now
    while await world.notices.visible():
        await hooked.post()
    assert len(hooked.receiver.posts) == 10, "one batch"
    assert hooked.delivery(job.meta.job_id) == Delivery("retrying", None, "timeout")
    await hooked.post_on()
    assert world.clock.now - began <= GIVE_UP_MS
    assert len(hooked.dead.buried) == 100, "each is given up all the same, and only after a last try"
    assert len({headers["webhook-id"] for _, headers, _ in hooked.receiver.posts}) == 100
    assert len(hooked.receiver.posts) < 1_500


@awaited
async def test_what_waits_for_a_receiver_gets_there_when_it_is_back(hooked: Hooked) -> None:
    world = hooked.world
    hooked.receiver.answers = [*[Answer(503)] * 15, Answer(200)]
    await world.submit(40, webhook=webhook("target.done"))
    await world.drain()
    await hooked.post_on(hours=1)
    assert not hooked.dead.buried
    assert len(hooked.receiver.posts) == 55


@awaited
async def test_a_receiver_that_is_away_puts_off_no_other_ones(hooked: Hooked) -> None:
    world = hooked.world
    await WebhookSecrets(world.store, world.clock).renew("acme", "bob")
    hooked.receiver.answers = [Answer(503), Answer(200)]
    first = await world.submit(1, webhook=webhook())
    await world.drain()
    await hooked.post()
    other = await world.submit(1, webhook=webhook(url="https://other.example.com/"), fresh=True)
    bobs = await world.submit(1, webhook=webhook(), who=BOB)
    await world.drain()
    await hooked.post()
    states = {job.meta.job_id: hooked.delivery(job.meta.job_id) for job in (first, other, bobs)}
    assert [found and found.state for found in states.values()] == ["retrying", "delivered", "delivered"]
