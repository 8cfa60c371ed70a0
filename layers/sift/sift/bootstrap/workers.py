"""What the functions are made of that queues and the schedule of sweeps invoke."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from sift import settings
from sift.bootstrap import parts
from sift.clock import SystemClock
from sift.environment import LazyClient
from sift.queue.sqs import SqsDeadLetters

if TYPE_CHECKING:
    from sift.services.assemble import Assembler
    from sift.services.notify import Notifier
    from sift.services.sweep import Sweeper
    from sift.services.work import Worker

#: What one request of an inference job may take, in seconds: Lambda's 900, less what storing its response may.
REQUEST_SECONDS = 880.0


@functools.cache
def worker() -> Worker:
    """The worker of functions/fetch."""
    from sift.bootstrap import fetching
    from sift.services.fetching import FetchRunner
    from sift.services.work import Worker

    config = settings.load(settings.FetchSettings, os.environ)
    store, clock = parts.make_store(config), SystemClock()
    pacer = fetching.make_pacer(config, store)
    fetch = fetching.fetch_with(fetching.make_pipeline(config).run)
    return Worker(
        store=store,
        queue=parts.make_queue(config.fetch_queue_url),
        dead_letters=SqsDeadLetters(LazyClient("sqs"), config.fetch_dead_letter_queue_url),
        clock=clock,
        advancer=parts.make_advancer(config, store),
        runner=FetchRunner(fetch, parts.make_blobs(config), clock, pacer),
        lease_seconds=config.lease_seconds,
        pacer=pacer,
        notices=parts.make_notices(config),
    )


@functools.cache
def inference_worker() -> Worker:
    """The worker of functions/inference."""
    from sift.bootstrap import fetching
    from sift.services.inferring import InferenceRunner
    from sift.services.work import Worker
    from sift.upstream import Upstream

    config = settings.load(settings.InferenceSettings, os.environ)
    store, clock = parts.make_store(config), SystemClock()
    upstream = Upstream(fetching.make_gateway(config.gateway_url, config.gateway_secret))
    return Worker(
        store=store,
        queue=parts.make_queue(config.inference_queue_url),
        dead_letters=SqsDeadLetters(LazyClient("sqs"), config.inference_dead_letter_queue_url),
        clock=clock,
        advancer=parts.make_advancer(config, store),
        runner=InferenceRunner(upstream, store, parts.make_blobs(config), clock, REQUEST_SECONDS),
        lease_seconds=config.lease_seconds,
        notices=parts.make_notices(config),
    )


@functools.cache
def notifier() -> Notifier:
    """The notifier of functions/notify."""
    from sift.connections import make_tls_context
    from sift.content.poster import GuardedPoster
    from sift.services.notify import Notifier

    config = settings.load(settings.NotifySettings, os.environ)
    guard = parts.make_guard(config.guard_allow, config.guard_deny)
    return Notifier(
        store=parts.make_store(config),
        queue=parts.make_queue(config.notify_queue_url),
        dead_letters=SqsDeadLetters(LazyClient("sqs"), config.notify_dead_letter_queue_url),
        poster=GuardedPoster(guard, config.user_agent, make_tls_context(None)),
        clock=SystemClock(),
    )


@functools.cache
def assembler() -> Assembler:
    """The assembler of functions/assemble."""
    from sift.services.assemble import Assembler
    from sift.services.read import Reader

    config = settings.load(settings.AssembleSettings, os.environ)
    store, blobs, clock = parts.make_store(config), parts.make_blobs(config), SystemClock()
    reader = Reader(store, blobs, clock)
    queue = parts.make_queue(config.assemble_queue_url)
    return Assembler(store, queue, blobs, clock, reader.segment)


@functools.cache
def sweeper() -> Sweeper:
    """The sweeper of functions/sweep."""
    from sift.services.purge import Purger
    from sift.services.sweep import Sweeper

    config = settings.load(settings.SweepSettings, os.environ)
    store, queues, clock = parts.make_store(config), parts.make_queues(config), SystemClock()
    return Sweeper(
        store,
        queues["fetch"],
        clock,
        parts.make_advancer(config, store),
        Purger(store, parts.make_blobs(config), clock),
        visibility_seconds=config.visibility_seconds,
        others={"inference": queues["inference"]},
    )
