"""Contract of the store: webhooks, their secrets, and keys that events may use."""

from __future__ import annotations

import asyncio
import dataclasses

from sift.identity import Identity, KeyRecord
from sift.store.ports import Store
from sift.webhooks import Delivery, Secrets
from tests.contract.conftest import NOW, submission

WEBHOOK = {
    "url": "https://hooks.example.com/?a=1",
    "events": ["job.started", "job.ended"],
    "headers": {"authorization": "Bearer x"},
    "metadata": {"run": "7"},
}


def test_a_webhook_is_kept_with_its_job(store: Store) -> None:
    async def story() -> None:
        made = submission()
        made = dataclasses.replace(
            made,
            meta=dataclasses.replace(made.meta, webhook=WEBHOOK),
            state=dataclasses.replace(made.state, notify=5),
        )
        await store.commit(made, NOW)
        assert await store.get_job(made.meta.job_id) == (made.meta, made.state)
        changed = await store.claim(made.meta.job_id, 0, NOW + 105_000, NOW)
        assert changed.state is not None
        assert changed.state.notify == 5, "every change tells what is asked for"

    asyncio.run(story())


def test_how_posts_go_is_kept_beside_the_job_and_goes_with_it(store: Store) -> None:
    async def story() -> None:
        made, other = submission(), submission()
        for one in (made, other):
            await store.commit(one, NOW)
        job_id = made.meta.job_id
        assert await store.get_deliveries([job_id]) == {}
        for delivery in (Delivery("retrying", None, "timeout"), Delivery("retrying", 503, "http_error")):
            await store.note_delivery(job_id, delivery, NOW // 1000 + 60)
            assert await store.get_deliveries([job_id, other.meta.job_id]) == {job_id: delivery}
        assert await store.get_job(job_id) == (made.meta, made.state), "the job itself is not touched"
        await store.remove_job(job_id)
        assert await store.get_deliveries([job_id]) == {}

    asyncio.run(story())


def test_that_a_post_was_given_up_stays(store: Store) -> None:
    async def story() -> None:
        made = submission()
        await store.commit(made, NOW)
        job_id, failed = made.meta.job_id, Delivery("failed", 410, "gone")
        await store.note_delivery(job_id, Delivery("delivered", 200), None)
        await store.note_delivery(job_id, failed, None)
        await store.note_delivery(job_id, Delivery("delivered", 200), None)
        assert await store.get_deliveries([job_id]) == {job_id: failed}

    asyncio.run(story())


def test_secrets_are_replaced_by_one_who_has_seen_them(store: Store) -> None:
    async def story() -> None:
        first, second = Secrets("whsec_b25l"), Secrets("whsec_dHdv", "whsec_b25l", NOW // 1000)
        assert await store.get_secrets("acme/ann") is None
        assert await store.put_secrets("acme/ann", first, None)
        assert not await store.put_secrets("acme/ann", second, None)
        assert await store.get_secrets("acme/ann") == first
        assert await store.put_secrets("acme/ann", second, first)
        assert not await store.put_secrets("acme/ann", first, first)
        assert await store.get_secrets("acme/ann") == second
        assert await store.get_secrets("acme/bob") is None

    asyncio.run(story())


def test_one_of_many_who_renew_a_secret_at_once_wins(store: Store) -> None:
    async def story() -> None:
        secrets = [Secrets(f"whsec_{number}") for number in range(8)]
        stored = await asyncio.gather(*(store.put_secrets("acme/ann", one, None) for one in secrets))
        assert stored.count(True) == 1
        assert await store.get_secrets("acme/ann") == secrets[stored.index(True)]

    asyncio.run(story())


def test_a_key_says_whether_events_may_use_it(store: Store) -> None:
    async def story() -> None:
        for number, events in enumerate((True, False)):
            record = KeyRecord(f"{number:012x}", "0" * 64, Identity("acme", "ann", f"{number:012x}"), events=events)
            await store.put_key(record)
            assert await store.get_key(record.key_id) == record

    asyncio.run(story())
