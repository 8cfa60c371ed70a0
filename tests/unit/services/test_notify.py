"""Webhooks: what is put on the queue of notices, how it is posted, and what becomes of posts that fail."""

from __future__ import annotations

import asyncio
import functools
import json
import random
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from sift.errors import Invalid, TargetBusy, TargetFailed, Unavailable
from sift.notices import Notice, decode
from sift.queue.ports import Received
from sift.services.notify import FIRST_WAIT, GIVE_UP_MS, MOST_WAIT, Notifier, post_wait
from sift.services.webhook_secrets import WebhookSecrets
from sift.webhooks import Delivery, sign
from tests.unit.services.faults import Fault, at
from tests.unit.services.world import ANN, BOB, HOUR, World, urls

URL = "https://hooks.example.com/sift?token=t0ken"
NOT_THERE = TargetFailed("http_error", "It answered 404.", "Check the URL.", status=404)
ALL = ["job.started", "target.done", "target.failed", "job.ended"]


def awaited(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test with a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def webhook(*events: str, **values: Any) -> dict[str, Any]:
    return {"url": URL, "events": list(events) or ["job.ended"], "headers": {}, "metadata": {}, **values}


@dataclass(frozen=True)
class Answer:
    status: int
    retry_after: float | None = None


@dataclass
class Receiver:
    """Answers what it is told to, the last one for ever after; keeps what was posted."""

    answers: list[Answer | Exception] = field(default_factory=lambda: [Answer(204)])
    posts: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_s: float) -> Answer:
        assert 0 < deadline_s <= 10
        self.posts.append((url, dict(headers), body))
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, _, body in self.posts]


class Hooked:
    """A world with a receiver, and the function that posts to it."""

    def __init__(self) -> None:
        self.world = World()
        self.receiver = Receiver()
        self.dead = self.world.queue
        self.notifier = self.make_notifier()
        self.secret = asyncio.run(WebhookSecrets(self.world.store, self.world.clock).renew("acme", "ann"))

    def make_notifier(self) -> Notifier:
        world = self.world
        return Notifier(
            store=world.store, queue=world.notices, dead_letters=self.dead, poster=self.receiver, clock=world.clock,
            random_source=random.Random(1),
        )  # fmt: skip

    async def post(self, seconds: float = 30.0) -> list[str]:
        """One batch of what is visible; what it does not keep is deleted."""
        notices = self.world.notices
        batch = [Received(receipt, receipt, m.body, m.receives) for receipt, m in notices.receive(10)]
        kept = await self.notifier.run_batch(batch, lambda: seconds)
        for received in batch:
            if received.message_id not in kept:
                notices.delete(received.receipt)
        return kept

    async def post_on(self, hours: float = 30) -> None:
        """Batches until the queue is empty, however long the waits are."""
        end = self.world.clock.now + hours * HOUR
        while self.world.notices.waiting:
            assert self.world.clock.now < end, "it goes on for ever"
            await self.post()
            due = [message.visible_at for message in self.world.notices.waiting.values()]
            self.world.clock.now = max([self.world.clock.now, *([min(due)] if due else [])])

    def delivery(self, job_id: str) -> Delivery | None:
        return self.world.store.deliveries.get(job_id)


@pytest.fixture
def hooked() -> Hooked:
    return Hooked()


@awaited
async def test_the_end_is_posted_and_signed(hooked: Hooked) -> None:
    world = hooked.world
    asked = webhook(headers={"authorization": "Bearer x"}, metadata={"run": "7"})
    job = await world.submit(2, webhook=asked)
    world.site.answers[urls(2)[1]] = [NOT_THERE]
    await world.drain()
    assert await hooked.post() == []
    ((url, headers, body),) = hooked.receiver.posts
    assert url == URL
    assert headers["authorization"] == "Bearer x"
    name = job.meta.job_id.removeprefix("job_")
    assert headers["webhook-id"] == f"msg_{name}_job_ended"
    assert headers["webhook-timestamp"] == str(world.clock.now // 1000)
    assert headers["webhook-signature"] == sign(hooked.secret, headers["webhook-id"], world.clock.now // 1000, body)
    event = json.loads(body)
    assert event["type"] == "job.ended"
    data = event["data"]
    assert (data["job_id"], data["status"], data["metadata"]) == (job.meta.job_id, "partial", {"run": "7"})
    assert (data["tenant"], data["actor"]) == ("acme", "ann")
    assert (data["counts"]["done"], data["counts"]["failed"]) == (1, 1)
    assert hooked.delivery(job.meta.job_id) == Delivery("delivered", 204)
    assert not world.notices.waiting


@awaited
async def test_what_is_asked_for_is_posted_and_nothing_else(hooked: Hooked) -> None:
    world = hooked.world
    world.site.answers[urls(2)[1]] = [NOT_THERE]
    await world.submit(2, webhook=webhook(*ALL), fresh=True)
    await world.drain()
    await hooked.post()
    found = {event["type"]: event["data"] for event in hooked.receiver.bodies()}
    assert sorted(found) == sorted(ALL)
    assert found["target.done"]["url"] == urls(1)[0]
    assert found["target.failed"]["error"]["code"] == "http_error"
    assert found["target.failed"]["index"] == 1
    assert found["job.started"]["status"] == "running"
    ids = [headers["webhook-id"] for _, headers, _ in hooked.receiver.posts]
    assert len(set(ids)) == 4
    hooked.receiver.posts.clear()
    await world.submit(2, webhook=webhook("target.failed"), fresh=True)
    await world.drain()
    await hooked.post()
    assert [event["type"] for event in hooked.receiver.bodies()] == ["target.failed"]


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
async def test_of_a_deleted_job_nothing_is_posted(hooked: Hooked) -> None:
    world = hooked.world
    job = await world.submit(1, webhook=webhook())
    await world.drain()
    await world.controller.delete(ANN, job.meta.job_id)
    await world.sweep()
    assert await hooked.post() == []
    assert not hooked.receiver.posts
    assert not world.store.deliveries


@awaited
async def test_two_secrets_sign_while_they_change(hooked: Hooked) -> None:
    world = hooked.world
    secrets = WebhookSecrets(world.store, world.clock)
    newer = await secrets.renew("acme", "ann", overlap_seconds=3600)
    for _ in range(2):
        await world.submit(1, webhook=webhook(), fresh=True)
    await world.drain()
    await hooked.post()
    for _, headers, body in hooked.receiver.posts:
        of = headers["webhook-id"], int(headers["webhook-timestamp"]), body
        assert headers["webhook-signature"].split() == [sign(newer, *of), sign(hooked.secret, *of)]
    hooked.receiver.posts.clear()
    world.clock.now += HOUR
    await world.submit(1, webhook=webhook(), fresh=True)
    await world.drain()
    await hooked.post()
    ((_, headers, body),) = hooked.receiver.posts
    of = headers["webhook-id"], int(headers["webhook-timestamp"]), body
    assert headers["webhook-signature"].split() == [sign(newer, *of)]


@awaited
async def test_a_secret_without_overlap_ends_the_one_before(hooked: Hooked) -> None:
    world = hooked.world
    newest = await WebhookSecrets(world.store, world.clock).renew("acme", "ann", overlap_seconds=0)
    assert (await world.store.get_secrets("acme/ann")).valid(world.clock.now // 1000) == [newest]  # type: ignore[union-attr]
    assert newest.startswith("whsec_")
    with pytest.raises(ValueError, match="not a name"):
        await WebhookSecrets(world.store, world.clock).renew("a/b", "ann")


@awaited
async def test_a_secret_whose_answer_is_lost_is_the_one_that_is_stored(hooked: Hooked) -> None:
    world = hooked.world
    life = world.restart(at("store.put_secrets", Fault.REPEATED))
    secret = await WebhookSecrets(life.wrap("store", world.store), world.clock).renew("acme", "bob")
    assert (await world.store.get_secrets("acme/bob")).current == secret  # type: ignore[union-attr]


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


@awaited
async def test_what_is_no_notice_is_buried_and_a_later_version_waits(hooked: Hooked) -> None:
    world = hooked.world
    world.notices.add("not a notice")
    later = world.notices.add('{"v": 2}')
    assert await hooked.post() == [later]
    assert [body for body, _ in hooked.dead.buried] == ["not a notice"]


@awaited
async def test_without_time_left_nothing_is_posted(hooked: Hooked) -> None:
    world = hooked.world
    await world.submit(1, webhook=webhook())
    await world.drain()
    assert len(await hooked.post(seconds=12)) == 1
    assert not hooked.receiver.posts
    assert await hooked.post() == []


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
async def test_targets_that_were_all_taken_at_once_read_as_delivered(hooked: Hooked) -> None:
    world = hooked.world
    job = await world.submit(25, webhook=webhook("target.done"))
    await world.drain()
    while world.notices.waiting:
        assert await hooked.post() == []
    assert hooked.delivery(job.meta.job_id) == Delivery("delivered", 204)


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
