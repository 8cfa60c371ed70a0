"""Webhooks: what is posted of a notice, and how it is signed."""

from __future__ import annotations

import json

import pytest

from sift.services.webhook_secrets import WebhookSecrets
from sift.webhooks import Delivery, sign
from tests.unit.services.faults import Fault, at
from tests.unit.services.hooked import ALL, NOT_THERE, URL, Hooked, awaited, webhook
from tests.unit.services.world import ANN, HOUR, urls


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
async def test_targets_that_were_all_taken_at_once_read_as_delivered(hooked: Hooked) -> None:
    world = hooked.world
    job = await world.submit(25, webhook=webhook("target.done"))
    await world.drain()
    while world.notices.waiting:
        assert await hooked.post() == []
    assert hooked.delivery(job.meta.job_id) == Delivery("delivered", 204)


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
