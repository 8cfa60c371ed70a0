"""Errors as problem documents: the one table of HTTP statuses."""

from __future__ import annotations

import http
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import Response

from sift import errors

if TYPE_CHECKING:
    from sift.clashes import Clash

MEDIA_TYPE = "application/problem+json"

#: The most specific class counts; all of them are listed in docs/api.md.
STATUS: dict[type[errors.SiftError], int] = {
    errors.Malformed: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.TooLarge: 413,
    errors.Invalid: 422,
    errors.CallerBusy: 429,
    errors.ServiceBusy: 503,
    errors.Unavailable: 503,
}
#: What became of a target that was fetched at once, by its code. Any other lies in what was asked for, or in what the
#: document is: the request was understood, and can't be met as it is (422).
TARGET_STATUS = {
    "dns_failed": 502,
    "tls_failed": 502,
    "connect_failed": 502,
    "too_many_redirects": 502,
    "http_error": 502,
    "busy": 503,
    "timeout": 504,
    "crashed": 500,
}
UNAVAILABLE_RETRY = 5
#: When to come back to a busy site that does not say.
BUSY_RETRY = 10
#: How many wrong fields one answer lists.
MOST_FIELDS = 10

#: What is wrong with a submission as a whole, by the kind of the validation's error.
_OF_THE_WHOLE = {"no_targets": "no_targets", "two_kinds": "invalid_request", "no_options": "unsupported_option"}
_ONE_KIND = 'Send {"targets": [{"url": "https://..."}]}, or {"requests": [{"path": "/v1/...", "body": {...}}]}.'
_SHAPES = {
    "targets": "A target is an object with `url` (http or https), `options` and `id`.",
    "requests": "A request is an object with `path`, `model`, `body` and `id`.",
}


def answer(error: errors.SiftError, request_id: str) -> Response[str]:
    """The response for an error that sift raised on purpose; an unlisted class is internal."""
    if isinstance(error, errors.TargetFailed | errors.TargetBusy):
        return _of_target(error, request_id)
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
    if status == 500:
        return internal(request_id)
    headers = {}
    retry_after = UNAVAILABLE_RETRY if isinstance(error, errors.Unavailable) else None
    extra: Mapping[str, Any] = {}
    if isinstance(error, errors.RequestRefused):
        retry_after, extra = error.retry_after, error.extra
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    if status == 409:
        headers["x-should-retry"] = "false"  # the OpenAI and Anthropic SDKs repeat a 409 unless told not to
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    detail = "The service did not answer." if isinstance(error, errors.Unavailable) else error.detail
    return _response(status, error.code, detail, error.hint, request_id, headers, extra)


def _of_target(error: errors.TargetFailed | errors.TargetBusy, request_id: str) -> Response[str]:
    """The response for a target's own error: `target_status` is the page's, `meta` what is known of it."""
    extra: dict[str, Any] = {"target_status": error.status, "meta": error.meta or None}
    headers = {}
    if isinstance(error, errors.TargetBusy):
        headers["Retry-After"] = str(math.ceil(BUSY_RETRY if error.retry_after is None else error.retry_after))
    status = TARGET_STATUS.get(error.code, 422)
    return _response(status, error.code, error.detail, error.hint, request_id, headers, extra)


def internal(request_id: str) -> Response[str]:
    """The response for what nobody expected; the log has the rest under the request id."""
    hint = "Try again; if it stays, look for the request id in the log of the API function."
    return _response(500, "internal", "The request failed inside sift.", hint, request_id, {}, {})


def _response(
    status: int,
    code: str,
    detail: str,
    hint: str,
    request_id: str,
    headers: Mapping[str, str],
    extra: Mapping[str, Any],
) -> Response[str]:
    problem = {
        "type": "about:blank",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint,
        "request_id": request_id,
    }
    body = json.dumps({**problem, **extra}, ensure_ascii=False)
    return Response(status, content_type=MEDIA_TYPE, body=body, headers=dict(headers))


def malformed() -> errors.Malformed:
    """The refusal of a body that can't be read."""
    return errors.Malformed(
        "malformed_json", "The body is not a JSON object, or too deep a one.", "Send one JSON object, in UTF-8."
    )


def refuse_fields(found: Sequence[Mapping[str, Any]]) -> errors.RequestRefused:
    """What the validation of a request found, as the error that the caller sees: the first one decides."""
    first = found[0]
    loc = tuple(first["loc"])
    source, path = (loc[0], loc[1:]) if loc else ("body", ())
    name = ".".join(str(part) for part in path)
    fields = [{"field": ".".join(map(str, e["loc"][1:])), "detail": e["msg"]} for e in found[:MOST_FIELDS]]
    extra: dict[str, Any] = {"fields": fields}
    kind, message = first["type"], first["msg"]
    if kind in _OF_THE_WHOLE:
        return errors.Invalid(_OF_THE_WHOLE[kind], message, _ONE_KIND, extra={})
    if kind == "json_invalid" or (source == "body" and not path):
        return malformed()
    if source == "path":
        return errors.NotFound("not_found", f"{name}: {message}", "Write it as it is in the answers of this API.")
    if source != "body":
        return errors.Invalid(
            "invalid_request", f"{name}: {message}", "See /docs for what this route takes.", extra=extra
        )
    detail = f"{name}: {message}"
    if path in {("targets",), ("requests",)}:
        return errors.Invalid("no_targets", detail, _ONE_KIND, extra=extra)
    if path[0] == "webhook":
        hint = "A webhook is an object with `url` (http or https), `events`, `headers` and `metadata`."
        return errors.Invalid("invalid_webhook", detail, hint, extra=extra)
    if path[0] == "options" or "options" in path[2:3]:
        from sift.targets import FetchOptions  # a cold start does without

        hint = f"The options are {', '.join(FetchOptions.model_fields)}."
        return errors.Invalid("unsupported_option", detail, hint, extra=extra)
    if path[0] in _SHAPES:
        if len(path) > 1:
            extra["index"] = path[1]
        hint = _SHAPES[path[0]]
        return errors.Invalid("invalid_target", detail, hint, extra=extra)
    return errors.Invalid("invalid_request", detail, "See /docs for what this route takes.", extra=extra)


def refuse_clash(index: int | None, clash: Clash) -> errors.RequestRefused:
    """The refusal of options that do not go together: of a job's target, its own and the job's; without `index`, of
    the one target of a request."""
    field = f"options.{clash.option}" if index is None else f"targets.{index}.options.{clash.option}"
    extra: dict[str, Any] = {"fields": [{"field": field, "detail": clash.detail}]}
    if index is not None:
        extra["index"] = index
    return errors.Invalid("unsupported_option", f"{field}: {clash.detail}", clash.hint, extra=extra)
