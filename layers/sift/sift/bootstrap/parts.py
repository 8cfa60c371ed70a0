"""The parts that several functions have in common.

What one function alone needs is imported where it is put together: each cold start pays for its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sift.blobs.s3 import S3Blobs
from sift.clock import SystemClock
from sift.environment import LazyClient
from sift.store.dynamo import DynamoStore

if TYPE_CHECKING:
    from sift import settings
    from sift.content.guard import Guard
    from sift.jobs import Kind
    from sift.queue.sqs import SqsQueue
    from sift.services.advance import Advancer
    from sift.services.notices import Notices


def make_store(config: settings.Settings) -> DynamoStore:
    """The table."""
    return DynamoStore(LazyClient("dynamodb"), config.table_name)


def make_blobs(config: settings.Settings) -> S3Blobs:
    """The bucket."""
    return S3Blobs(LazyClient("s3"), config.bucket_name)


def make_queue(url: str) -> SqsQueue:
    """A queue."""
    from sift.queue.sqs import SqsQueue

    return SqsQueue(LazyClient("sqs"), url)


def make_queues(config: settings.Settings) -> dict[Kind, SqsQueue]:
    """The queue of each kind of job."""
    return {"fetch": make_queue(config.fetch_queue_url), "inference": make_queue(config.inference_queue_url)}


def make_advancer(config: settings.Settings, store: DynamoStore) -> Advancer:
    """What brings the jobs of this table forward."""
    from sift.events.eventbridge import EventBridgeBus
    from sift.queue.kinds import KindQueues
    from sift.services.advance import Advancer

    bus = EventBridgeBus(LazyClient("events"), config.event_bus_name)
    queues, assembly = KindQueues(make_queues(config)), make_queue(config.assemble_queue_url)
    return Advancer(store, queues, make_blobs(config), bus, SystemClock(), make_notices(config), assembly=assembly)


def make_notices(config: settings.Settings) -> Notices:
    """What tells webhooks."""
    from sift.services.notices import Notices

    return Notices(make_queue(config.notify_queue_url), SystemClock())


def make_guard(allow: str, deny: str) -> Guard:
    """The guard, from the two lists of its parameters."""
    from sift.content.addresses import parse_allow
    from sift.content.denials import parse_deny
    from sift.content.guard import Guard, SystemResolver

    return Guard(SystemResolver(), parse_allow(allow), parse_deny(deny))
