"""Puts the parts together for each function: the only place that makes clients, and none before it is needed."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import boto3
from botocore.config import Config
from pydantic import ValidationError

from sift import settings
from sift.blobs.s3 import S3Blobs
from sift.clock import SystemClock
from sift.errors import TargetFailed
from sift.events.eventbridge import EventBridgeBus
from sift.jobs import Kind
from sift.queue.kinds import KindQueues
from sift.queue.sqs import SqsDeadLetters, SqsQueue
from sift.services.advance import Advancer
from sift.services.notices import Notices
from sift.store.dynamo import DynamoStore
from sift.targets import Content, FetchOptions

# What one function alone needs is imported where it is put together: each cold start pays for its own.
if TYPE_CHECKING:
    from sift.content.guard import Guard
    from sift.services.assemble import Assembler
    from sift.services.control import Controller
    from sift.services.credentials import Authenticator
    from sift.services.notify import Notifier
    from sift.services.pace import Pacer
    from sift.services.read import Reader
    from sift.services.results import Results
    from sift.services.retry import Retrier
    from sift.services.schedule import Scheduler
    from sift.services.submit import Submitter
    from sift.services.sweep import Sweeper
    from sift.services.work import Worker

T = TypeVar("T")

#: Ten targets at once, each with at most one call under way, and some room.
THREADS = 16
#: What one request of an inference job may take, in seconds: Lambda's 900, less what storing its response may.
REQUEST_SECONDS = 880.0


@functools.cache
def _runner() -> asyncio.Runner:
    runner = asyncio.Runner()
    runner.get_loop().set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="aws"))
    return runner


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on the loop that this execution environment keeps between invocations."""
    return _runner().run(work, context=contextvars.copy_context())  # what the log is about goes along


@functools.cache
def _client(service: str) -> Any:
    """One client per service; boto3 is half of a cold start, so each is made when first used."""
    options = Config(
        connect_timeout=2,
        read_timeout=10,
        max_pool_connections=THREADS,
        retries={"mode": "standard", "total_max_attempts": 3},
        signature_version="s3v4" if service == "s3" else None,
    )
    make: Any = boto3.client  # its stubs know each service by name only
    return make(service, config=options)


class _Lazy:
    """Stands for a client until its first use."""

    def __init__(self, service: str) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        return getattr(_client(self._service), name)


@dataclass(frozen=True)
class Api:
    """What functions/api calls."""

    authenticator: Authenticator
    submitter: Submitter
    reader: Reader
    controller: Controller
    retrier: Retrier
    results: Results
    blobs: S3Blobs
    check_webhook: Callable[[str], None]


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


def _store(config: settings.Settings) -> DynamoStore:
    return DynamoStore(_Lazy("dynamodb"), config.table_name)


def _queues(config: settings.Settings) -> dict[Kind, SqsQueue]:
    """The queue of each kind of job."""
    urls: dict[Kind, str] = {"fetch": config.fetch_queue_url, "inference": config.inference_queue_url}
    return {kind: SqsQueue(_Lazy("sqs"), url) for kind, url in urls.items()}


def _advancer(config: settings.Settings, store: DynamoStore) -> Advancer:
    queues = KindQueues(_queues(config))
    bus = EventBridgeBus(_Lazy("events"), config.event_bus_name)
    blobs, clock = S3Blobs(_Lazy("s3"), config.bucket_name), SystemClock()
    return Advancer(store, queues, blobs, bus, clock, _notices(config), assembly=_assembly_queue(config))


def _assembly_queue(config: settings.Settings) -> SqsQueue:
    return SqsQueue(_Lazy("sqs"), config.assemble_queue_url)


def _notices(config: settings.Settings) -> Notices:
    return Notices(SqsQueue(_Lazy("sqs"), config.notify_queue_url), SystemClock())


def _guard(allow: str, deny: str) -> Guard:
    from sift.content.addresses import parse_allow  # most invocations of most functions do without
    from sift.content.denials import parse_deny
    from sift.content.guard import Guard, SystemResolver

    return Guard(SystemResolver(), parse_allow(allow), parse_deny(deny))


def _webhook_check(config: settings.SubmitSettings) -> Callable[[str], None]:
    """What of the guard can be said of an address without resolving it."""

    def check(url: str) -> None:
        _guard(config.guard_allow, config.guard_deny).foresee(url)

    return check


def _authenticator(config: settings.CallerSettings, store: DynamoStore) -> Authenticator:
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


def _submitter(config: settings.SubmitSettings, store: DynamoStore) -> Submitter:
    from sift.classes import read_classes, read_paces
    from sift.identity import Limits
    from sift.model_requests import read_paths
    from sift.services.submit import Submitter, Terms

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
    blobs = S3Blobs(_Lazy("s3"), config.bucket_name)
    return Submitter(store, KindQueues(_queues(config)), blobs, SystemClock(), terms)


@functools.cache
def api() -> Api:
    """The services of functions/api."""
    from sift.services.control import Controller
    from sift.services.read import Reader
    from sift.services.results import Results
    from sift.services.retry import Retrier

    config = settings.load(settings.ApiSettings, os.environ)
    store, clock = _store(config), SystemClock()
    advancer = _advancer(config, store)
    reader = Reader(store, advancer, clock)
    submitter = _submitter(config, store)
    return Api(
        authenticator=_authenticator(config, store),
        submitter=submitter,
        reader=reader,
        controller=Controller(reader, advancer, store, clock),
        retrier=Retrier(reader, submitter),
        results=Results(reader, store, _assembly_queue(config), clock),
        blobs=S3Blobs(_Lazy("s3"), config.bucket_name),
        check_webhook=_webhook_check(config),
    )


@functools.cache
def schedule() -> Schedule:
    """The services of functions/schedule."""
    from sift.services.schedule import Scheduler

    config = settings.load(settings.ScheduleSettings, os.environ)
    store = _store(config)
    scheduler = Scheduler(store, _submitter(config, store), SystemClock(), config.event_key_id)
    return Schedule(scheduler, _webhook_check(config))


@functools.cache
def notifier() -> Notifier:
    """The notifier of functions/notify."""
    from sift.connections import make_tls_context
    from sift.content.poster import GuardedPoster
    from sift.services.notify import Notifier

    config = settings.load(settings.NotifySettings, os.environ)
    guard = _guard(config.guard_allow, config.guard_deny)
    return Notifier(
        store=_store(config),
        queue=SqsQueue(_Lazy("sqs"), config.notify_queue_url),
        dead_letters=SqsDeadLetters(_Lazy("sqs"), config.notify_dead_letter_queue_url),
        poster=GuardedPoster(guard, config.user_agent, make_tls_context(None)),
        clock=SystemClock(),
    )


def _pipeline(config: settings.ContentSettings) -> Any:
    from sift.content.pipeline import Pipeline, PipelineSettings  # the other functions do without its packages

    return Pipeline(
        PipelineSettings(
            guard_allow=config.guard_allow,
            guard_deny=config.guard_deny,
            user_agent=config.user_agent,
            archive_api=config.archive_api,
            archive_replay=config.archive_replay,
            robots=config.robots,
        ),
        answerer=_answerer(config),
    )


def _pacer(config: settings.ContentSettings, store: DynamoStore) -> Pacer | None:
    """Paces what a function fetches; None where hosts are not paced. An address that the operator lets through by
    name of its number is the operator's own."""
    if not config.host_rate:
        return None
    from sift.classes import read_paces
    from sift.content.addresses import parse_address, parse_allow
    from sift.pacing import PaceLimits
    from sift.services.pace import Pacer

    networks = [entry.network for entry in parse_allow(config.guard_allow)]

    def own(host: str) -> bool:
        address = parse_address(host)
        return address is not None and any(address in network for network in networks)

    limits, classes = PaceLimits(config.host_rate, config.host_concurrency), read_paces(config.caller_classes)
    return Pacer(store, SystemClock(), limits, own, classes)


@functools.cache
def worker() -> Worker:
    """The worker of functions/fetch."""
    from sift.services.fetching import FetchRunner
    from sift.services.work import Worker

    config = settings.load(settings.FetchSettings, os.environ)
    store = _store(config)
    blobs = S3Blobs(_Lazy("s3"), config.bucket_name)
    pacer = _pacer(config, store)
    return Worker(
        store=store,
        queue=SqsQueue(_Lazy("sqs"), config.fetch_queue_url),
        dead_letters=SqsDeadLetters(_Lazy("sqs"), config.fetch_dead_letter_queue_url),
        clock=SystemClock(),
        advancer=_advancer(config, store),
        runner=FetchRunner(fetch_with(_pipeline(config).run), blobs, SystemClock(), pacer),
        lease_seconds=config.lease_seconds,
        pacer=pacer,
        notices=_notices(config),
    )


def _answerer(config: settings.ContentSettings) -> Any:
    """What asks the model that answers questions; None where none is configured."""
    if not config.question_model or not config.gateway_url:
        return None
    from sift.completions import Completions
    from sift.content.answers import Answerer

    return Answerer(Completions(_gateway(config.gateway_url, config.gateway_secret)), config.question_model)


def _gateway(url: str, arn: str) -> Any:
    """The operator's model gateway, whatever asks it."""
    from sift.connections import make_tls_context
    from sift.gateway import Gateway
    from sift.secrets import Secret

    secret = Secret(_Lazy("secretsmanager"), _Lazy("ssm"), arn, SystemClock()).read if arn else None
    return Gateway(url, secret, make_tls_context(None))


@functools.cache
def inference_worker() -> Worker:
    """The worker of functions/inference."""
    from sift.services.inferring import InferenceRunner
    from sift.services.work import Worker
    from sift.upstream import Upstream

    config = settings.load(settings.InferenceSettings, os.environ)
    store, clock = _store(config), SystemClock()
    blobs = S3Blobs(_Lazy("s3"), config.bucket_name)
    upstream = Upstream(_gateway(config.gateway_url, config.gateway_secret))
    return Worker(
        store=store,
        queue=SqsQueue(_Lazy("sqs"), config.inference_queue_url),
        dead_letters=SqsDeadLetters(_Lazy("sqs"), config.inference_dead_letter_queue_url),
        clock=clock,
        advancer=_advancer(config, store),
        runner=InferenceRunner(upstream, store, blobs, clock, REQUEST_SECONDS),
        lease_seconds=config.lease_seconds,
        notices=_notices(config),
    )


@functools.cache
def fetch_now() -> FetchNow:
    """The services of functions/fetch_now."""
    config = settings.load(settings.FetchNowSettings, os.environ)
    from sift.services.pace import PacedFetch

    store = _store(config)
    pacer = _pacer(config, store)
    fetch = _pipeline(config).run
    return FetchNow(
        authenticator=_authenticator(config, store),
        fetch=PacedFetch(fetch, pacer) if pacer else fetch,
        blobs=S3Blobs(_Lazy("s3"), config.bucket_name),
    )


@functools.cache
def assembler() -> Assembler:
    """The assembler of functions/assemble."""
    from sift.api.views import line  # a line is what the API answers with
    from sift.services.assemble import Assembler
    from sift.services.read import Reader

    config = settings.load(settings.AssembleSettings, os.environ)
    store, blobs, clock = _store(config), S3Blobs(_Lazy("s3"), config.bucket_name), SystemClock()
    reader = Reader(store, _advancer(config, store), clock)
    return Assembler(store, _assembly_queue(config), blobs, clock, reader.segment, functools.partial(line, blobs=blobs))


@functools.cache
def sweeper() -> Sweeper:
    """The sweeper of functions/sweep."""
    from sift.services.purge import Purger
    from sift.services.sweep import Sweeper

    config = settings.load(settings.SweepSettings, os.environ)
    store, queues = _store(config), _queues(config)
    return Sweeper(
        store,
        queues["fetch"],
        SystemClock(),
        _advancer(config, store),
        Purger(store, S3Blobs(_Lazy("s3"), config.bucket_name), SystemClock()),
        visibility_seconds=config.visibility_seconds,
        others={"inference": queues["inference"]},
    )


def fetch_with(pipeline: Any) -> Any:
    """A Fetch that reads the options of a message for the pipeline."""

    def fetch(
        url: str, options: Mapping[str, Any], deadline_s: float, *, gone: TargetFailed | None = None
    ) -> Awaitable[Content]:
        try:
            read = FetchOptions.model_validate(options)
        except ValidationError as error:
            raise TargetFailed(
                "unsupported_option",
                f"This worker does not know the option {error.errors()[0]['loc']}.",
                "It was submitted by another version of sift; submit it again.",
            ) from error
        return pipeline(url, read, deadline_s, gone=gone)  # type: ignore[no-any-return]

    return fetch
