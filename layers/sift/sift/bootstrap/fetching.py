"""What fetches and asks the model, for a queue or for a caller that waits."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sift.clock import SystemClock
from sift.environment import LazyClient
from sift.errors import TargetFailed
from sift.targets import Content, FetchOptions

if TYPE_CHECKING:
    from sift import settings
    from sift.services.pace import Pacer
    from sift.store.dynamo import DynamoStore


def make_pipeline(config: settings.ContentSettings) -> Any:
    """What turns a URL into content."""
    from sift.content.pipeline import Pipeline, PipelineSettings

    return Pipeline(
        PipelineSettings(
            guard_allow=config.guard_allow,
            guard_deny=config.guard_deny,
            user_agent=config.user_agent,
            archive_api=config.archive_api,
            archive_replay=config.archive_replay,
            robots=config.robots,
        ),
        answerer=make_answerer(config),
    )


def make_pacer(config: settings.ContentSettings, store: DynamoStore) -> Pacer | None:
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


def make_answerer(config: settings.ContentSettings) -> Any:
    """What asks the model that answers questions; None where none is configured."""
    if not config.question_model or not config.gateway_url:
        return None
    from sift.completions import Completions
    from sift.content.answers import Answerer

    return Answerer(Completions(make_gateway(config.gateway_url, config.gateway_secret)), config.question_model)


def make_gateway(url: str, arn: str) -> Any:
    """The operator's model gateway, whatever asks it."""
    from sift.connections import make_tls_context
    from sift.gateway import Gateway
    from sift.secrets import Secret

    secret = Secret(LazyClient("secretsmanager"), LazyClient("ssm"), arn, SystemClock()).read if arn else None
    return Gateway(url, secret, make_tls_context(None))


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
