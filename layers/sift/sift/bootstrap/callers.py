"""What the functions are made of that submit jobs, or that callers reach."""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from sift import settings
from sift.bootstrap import parts
from sift.clock import SystemClock

if TYPE_CHECKING:
    from sift.blobs.s3 import S3Blobs
    from sift.errors import TargetFailed
    from sift.services.advance import Advancer
    from sift.services.control import Controller
    from sift.services.credentials import Authenticator
    from sift.services.read import Reader
    from sift.services.results import Results
    from sift.services.retry import Retrier
    from sift.services.schedule import Scheduler
    from sift.services.submit import Submitter
    from sift.store.dynamo import DynamoStore
    from sift.targets import Content, FetchOptions


class Api:
    """What functions/api calls, each service put together for the first request that needs it."""

    def __init__(self, config: settings.ApiSettings) -> None:
        self._config = config
        self._store = parts.make_store(config)
        self._clock = SystemClock()
        self.blobs: S3Blobs = parts.make_blobs(config)
        self.authenticator = _make_authenticator(config, self._store)

    @cached_property
    def submitter(self) -> Submitter:
        """Takes jobs in."""
        return _make_submitter(self._config, self._store)

    @cached_property
    def reader(self) -> Reader:
        """Reads them."""
        from sift.services.read import Reader

        return Reader(self._store, self.blobs, self._clock)

    @cached_property
    def controller(self) -> Controller:
        """Cancels, pauses, resumes, deletes."""
        from sift.services.control import Controller

        return Controller(self.reader, self._advancer, self._store, self._clock)

    @cached_property
    def retrier(self) -> Retrier:
        """Submits again what did not run."""
        from sift.services.retry import Retrier

        return Retrier(self.reader, self.submitter)

    @cached_property
    def results(self) -> Results:
        """Finds results files, or has them written."""
        from sift.services.results import Results

        return Results(self.reader, self._store, parts.make_queue(self._config.assemble_queue_url), self._clock)

    @cached_property
    def _advancer(self) -> Advancer:
        return parts.make_advancer(self._config, self._store)

    def check_webhook(self, url: str) -> None:
        """What of the guard can be said of an address without resolving it. Raises TargetFailed."""
        _check_webhook(self._config, url)


@dataclass(frozen=True)
class Schedule:
    """What functions/schedule calls."""

    scheduler: Scheduler
    check_webhook: Callable[[str], None]


class FetchPage(Protocol):
    """Fetches one URL within `deadline_s` seconds, as `sift.services.fetching.Fetch` does, with checked options.

    Raises TargetFailed or TargetBusy.
    """

    def __call__(
        self, url: str, options: FetchOptions, deadline_s: float, *, gone: TargetFailed | None = None
    ) -> Awaitable[Content]: ...


@dataclass(frozen=True)
class FetchNow:
    """What functions/fetch_now calls."""

    authenticator: Authenticator
    fetch: FetchPage
    blobs: S3Blobs


@functools.cache
def api() -> Api:
    """The services of functions/api."""
    return Api(settings.load(settings.ApiSettings, os.environ))


@functools.cache
def schedule() -> Schedule:
    """The services of functions/schedule."""
    from sift.services.schedule import Scheduler

    config = settings.load(settings.ScheduleSettings, os.environ)
    store = parts.make_store(config)
    scheduler = Scheduler(store, _make_submitter(config, store), SystemClock(), config.event_key_id)
    return Schedule(scheduler, functools.partial(_check_webhook, config))


@functools.cache
def fetch_now() -> FetchNow:
    """The services of functions/fetch_now."""
    from sift.bootstrap import fetching
    from sift.services.pace import PacedFetch

    config = settings.load(settings.FetchNowSettings, os.environ)
    store = parts.make_store(config)
    pacer = fetching.make_pacer(config, store)
    fetch = fetching.make_pipeline(config).run
    return FetchNow(
        authenticator=_make_authenticator(config, store),
        fetch=PacedFetch(fetch, pacer) if pacer else fetch,
        blobs=parts.make_blobs(config),
    )


def _check_webhook(config: settings.SubmitSettings, url: str) -> None:
    parts.make_guard(config.guard_allow, config.guard_deny).foresee(url)


def _make_authenticator(config: settings.CallerSettings, store: DynamoStore) -> Authenticator:
    """Who may call a function: the same for each that callers reach."""
    from sift.services.credentials import Authenticator
    from sift.services.keys import KeyService

    clock = SystemClock()
    tokens = None
    if config.jwt_issuer:
        from sift.claims import read_names
        from sift.jwks import Jwks
        from sift.services.tokens import TokenRules, TokenService

        rules = TokenRules(config.jwt_issuer, config.jwt_audience, read_names(config.jwt_claims))
        tokens = TokenService(rules, Jwks(config.jwt_jwks_url, clock))
    return Authenticator(KeyService(store, clock), tokens)


def _make_submitter(config: settings.SubmitSettings, store: DynamoStore) -> Submitter:
    from sift.classes import read_classes, read_paces
    from sift.identity import Limits
    from sift.model_requests import read_paths
    from sift.queue.kinds import KindQueues
    from sift.services.submit import Submitter
    from sift.services.terms import Terms

    limits = Limits(
        targets_per_job=config.targets_per_job,
        jobs_per_caller=config.jobs_per_caller,
        retained_jobs=config.retained_jobs,
        job_bytes=config.max_job_bytes,
        ttl_seconds=config.ttl_seconds,
    )
    classes = {name: limits.with_overrides(own) for name, own in read_classes(config.caller_classes).items()}
    paths = read_paths(config.inference_paths) if config.gateway_url else None
    paced = frozenset(read_paces(config.caller_classes))
    terms = Terms(config.jobs_total, limits, config.deadline_seconds, classes, paths, paced)
    return Submitter(store, KindQueues(parts.make_queues(config)), parts.make_blobs(config), SystemClock(), terms)
