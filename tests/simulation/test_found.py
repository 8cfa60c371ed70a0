"""What the simulator has found, each as a test of its own."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sift import ids
from sift.services.fetching import FetchRunner
from sift.services.work import Worker
from sift.store.dynamo import DynamoStore
from sift.store.memory import MemoryStore
from sift.store.ports import Changed
from sift.targets import Content
from tests.unit.services.world import ANN, LEASE_SECONDS, World, page, urls

URL = urls(1)[0]


class SentOnce(MemoryStore):
    """A table whose answers never get lost, and say so."""

    async def claim(self, *args: Any) -> Changed:
        return dataclasses.replace(await super().claim(*args), repeated=False)


class Always(random.Random):
    """Two leases of one millisecond are the same."""

    def randrange(self, *args: Any) -> int:
        return 0


def test_a_copy_in_the_same_batch_with_the_same_lease_is_not_mine() -> None:
    """Otherwise both are fetched, and the second content replaces the first, which was counted."""

    async def story() -> None:
        world = World()
        world.store.__class__ = SentOnce
        job = await world.submit(1)
        world.queue.add(next(iter(world.queue.waiting.values())).body)
        world.site.answers[URL] = [page("first"), page("second, and longer")]
        worker = Worker(
            store=world.store, queue=world.queue, dead_letters=world.queue, clock=world.clock,
            advancer=world.advancer,
            runner=FetchRunner(world.site.fetch, world.blobs, world.clock),
            lease_seconds=LEASE_SECONDS, random_source=Always(),
        )  # fmt: skip
        await world.deliver(2, worker=worker)
        assert world.site.fetched == [URL]
        world.check(job.meta.job_id, ["done"])

    asyncio.run(story())


class Refusing:
    """A client whose update is refused, after what botocore may have done before."""

    def __init__(self, *errors: tuple[str, int]) -> None:
        self._errors = list(errors)

    def update_item(self, **_: Any) -> Any:
        code, retries = self._errors.pop(0)
        meta = {"HTTPStatusCode": 400, "RetryAttempts": retries}
        raise ClientError({"Error": {"Code": code}, "ResponseMetadata": meta}, "UpdateItem")  # type: ignore[typeddict-item]


REFUSED, CONFLICT = "ConditionalCheckFailedException", "TransactionConflictException"


@pytest.mark.parametrize(
    ("errors", "repeated"),
    [
        ([(REFUSED, 0)], False),
        ([(REFUSED, 1)], True),
        ([(CONFLICT, 0), (REFUSED, 0)], False),
        ([(CONFLICT, 1), (CONFLICT, 0), (REFUSED, 0)], True),
    ],
)
def test_the_table_tells_a_refusal_of_a_repeated_request(errors: list[tuple[str, int]], repeated: bool) -> None:
    """Only that one may be owed to the very change that it refuses."""
    store = DynamoStore(Refusing(*errors), "table")
    changed = asyncio.run(store.claim(ids.new_job_id(1_796_000_000_000), 0, 1, 0))
    assert changed == Changed(False, None)
    assert changed.repeated is repeated


def test_a_late_outcome_does_not_make_a_retry_another_one() -> None:
    """A fetch that ends after the cancel leaves less to retry; asking again still answers the same new job."""

    async def story() -> None:
        world = World()
        job = await world.submit(3, window=1)
        retries = []

        async def cancel_and_retry() -> None:
            await world.controller.cancel(ANN, job.meta.job_id)
            retries.append(await world.retrier.retry(ANN, job.meta.job_id))

        world.site.during[URL] = cancel_and_retry
        world.site.answers[URL] = [Content(b"late", "text/plain")]
        await world.deliver(1)
        assert world.state(job).done == 1
        again = await world.retrier.retry(ANN, job.meta.job_id)
        assert again.reused
        assert again.meta.job_id == retries[0].meta.job_id

    asyncio.run(story())
