"""A job's body as a submission: one reading of it, whoever brings it in, a caller or an event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sift.api import problems
from sift.api.models import JobRequest, WebhookRequest
from sift.clashes import find_clash
from sift.errors import Invalid, TargetFailed
from sift.model_requests import read_request
from sift.services.submit import Request
from sift.specs import AnySpec, Spec
from sift.targets import FetchOptions

KEY_CHARS = 255

#: Raises TargetFailed for an address that no post would go to.
CheckWebhook = Callable[[str], None]


def read_submission(request: JobRequest, key: str | None, check_webhook: CheckWebhook) -> Request:
    """The submission as the services take it.

    `key` is the caller's Idempotency-Key. Raises Invalid.
    """
    if key is not None and len(key) > KEY_CHARS:
        raise Invalid("invalid_request", f"Idempotency-Key: longer than {KEY_CHARS} characters", "Use a shorter key.")
    webhook = None if request.webhook is None else _read_webhook(request.webhook, check_webhook)
    return Request(
        targets=_read_requests(request) if request.requests else _read_targets(request),
        options=request.options.model_dump(exclude_defaults=True),
        metadata=request.metadata,
        window=request.window,
        fresh=request.fresh,
        idempotency_key=key,
        webhook=webhook,
    )


def _read_targets(request: JobRequest) -> Sequence[AnySpec]:
    """The URLs, each with its options merged with the job's: a field that the target sets wins."""
    defaults = request.options.model_dump(exclude_unset=True)
    specs = []
    for index, target in enumerate(request.targets):
        merged = FetchOptions.model_validate(defaults | target.options.model_dump(exclude_unset=True))
        if clash := find_clash(merged):
            raise problems.refuse_clash(index, clash)
        specs.append(Spec(target.url, merged.model_dump(exclude_defaults=True), target.id))
    return specs


def _read_requests(request: JobRequest) -> Sequence[AnySpec]:
    return [read_request(index, one.path, one.model, one.body, one.id) for index, one in enumerate(request.requests)]


def _read_webhook(webhook: WebhookRequest, check_webhook: CheckWebhook) -> dict[str, Any]:
    try:
        check_webhook(webhook.url)
    except TargetFailed as error:
        detail = f"webhook.url: {error.detail}"
        extra = {"fields": [{"field": "webhook.url", "detail": error.detail}]}
        raise Invalid(error.code, detail, "Send the public http or https address of a receiver.", extra=extra) from None
    return {**webhook.model_dump(), "events": list(dict.fromkeys(webhook.events))}
