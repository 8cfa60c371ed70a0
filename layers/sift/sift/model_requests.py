"""What a request to the model gateway may be: its path, its body, and the models that its caller may use."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from sift.errors import Forbidden, Invalid, TooLarge
from sift.identity import Identity
from sift.nesting import MAX_LEVELS, is_deep
from sift.specs import RequestSpec

#: A body in bytes, as the compact JSON that is sent.
MAX_BODY_BYTES = 1024 * 1024
#: A body up to this (bytes) travels in its message: ten of them are well below what one batch may weigh.
INLINE_BODY_BYTES = 32 * 1024
MAX_PATH_CHARS = 512
MAX_MODEL_CHARS = 200

# Nothing that two servers may read in two ways: no escapes, no query, no fragment, no empty segment, no backslash.
_PATH = re.compile(r"(/[A-Za-z0-9._~:@+=,-]+)+")
_PATTERN = re.compile(r"(/[A-Za-z0-9._~:@+=,*-]+)+")
_MODEL = re.compile(rf"[!-~]{{1,{MAX_MODEL_CHARS}}}")


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One request. `path` is absolute (`/v1/chat/completions`), `body` is JSON, `identity` says whose it is: tenant,
    actor, subject and application, of which any may be missing. `request_id` is sift's own, and the same whenever
    the request is sent again."""

    path: str
    body: bytes
    identity: Mapping[str, str]
    request_id: str


@dataclass(frozen=True, slots=True)
class UpstreamResponse:
    """A response that has arrived whole, of whatever status that is not busy.

    `media_type` is its Content-Type as sent. `file` holds the body's `size` bytes and stands at its beginning; it is
    gone when the `async with` is left. `request_id` is the gateway's, None where it sent none. `usage` holds counts
    of tokens by the gateway's own names, None where a successful answer has none.
    """

    status: int
    media_type: str
    size: int
    file: BinaryIO
    request_id: str | None
    usage: Mapping[str, Any] | None


def read_paths(text: str) -> tuple[str, ...]:
    """The paths that may be asked for: patterns with commas between, in which `*` stands for any characters.

    Raises ValueError that says which one is wrong.
    """
    found = tuple(filter(None, (part.strip() for part in text.split(","))))
    if not found:
        raise ValueError("no path may be asked for")
    for pattern in found:
        if not _PATTERN.fullmatch(pattern) or _climbs(pattern):
            raise ValueError(f"{pattern!r} is no path with * in it")
    return found


def is_path(path: str) -> bool:
    """Whether it is an absolute path in the one way to write it."""
    return len(path) <= MAX_PATH_CHARS and _PATH.fullmatch(path) is not None and not _climbs(path)


def is_open(path: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern lets the path through."""
    return any(re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), path) for pattern in patterns)


def _climbs(path: str) -> bool:
    return bool({".", ".."} & set(path.split("/")))


def read_request(
    index: int, path: str, model: str | None, body: Mapping[str, Any], label: str | None = None
) -> RequestSpec:
    """A request as it is stored. A model that only the request names is put into the body that is sent.

    Raises Invalid or TooLarge, which name the index.
    """
    if not is_path(path):
        raise _invalid(
            index, "path", f"is not an absolute, normalised path of at most {MAX_PATH_CHARS} characters",
            "Send a path such as /v1/chat/completions, without query, fragment and escapes.",
        )  # fmt: skip
    if not body:
        raise _invalid(index, "body", "is empty", "Send the JSON object that the gateway is to get.")
    if any(name.casefold() == "model" != name for name in body):
        # A gateway that reads names in any case (Go's JSON does) would take the last of them for its model.
        raise _invalid(index, "body", "has a member that differs from `model` in case only", "Call it `model`.")
    named = body.get("model")
    if named is not None and not isinstance(named, str):
        raise _invalid(index, "body.model", "is no text", "Send the name of one model.")
    if model is not None and named is not None and model != named:
        raise _invalid(index, "model", "is not the model of the body", "Name the same model, or only one of the two.")
    chosen = model if named is None else named
    if chosen is not None and not _MODEL.fullmatch(chosen):
        raise _invalid(
            index, "model", f"is not 1 to {MAX_MODEL_CHARS} printable characters without spaces", "Name one model."
        )
    if is_deep(body):
        raise _invalid(index, "body", f"has more than {MAX_LEVELS} levels", "Nest it less deeply.")
    try:
        whole = body if chosen is None else {**body, "model": chosen}
        text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except ValueError:  # half of a surrogate pair, a number beyond a double
        raise _invalid(index, "body", "can't be sent as JSON in UTF-8", "Send what any JSON reader takes.") from None
    if size > MAX_BODY_BYTES:
        raise TooLarge(
            "request_too_large",
            f"requests.{index}.body: {size} bytes; {MAX_BODY_BYTES} are allowed.",
            "Shorten it, or let the gateway read large inputs from elsewhere.",
            extra={"index": index, "limit": MAX_BODY_BYTES},
        )
    return RequestSpec(path, chosen, text, label)


def check_requests(specs: Sequence[RequestSpec], identity: Identity, paths: Sequence[str]) -> None:
    """What depends on the deployment and the caller. Raises Invalid or Forbidden, which name the first index."""
    for index, spec in enumerate(specs):
        if not is_open(spec.path, paths):
            raise _invalid(index, "path", "is not one that this deployment allows", f"Allowed are {', '.join(paths)}.")
        if (reason := refuse_model(identity, spec.model)) is not None:
            raise Forbidden(
                "model_not_allowed",
                f"requests.{index}: {reason}",
                "Use another model; an operator decides which a key may use.",
                extra={"index": index},
            )


def refuse_model(identity: Identity, model: str | None) -> str | None:
    """Why this identity may not use the model, or None. A pattern is a glob (`gpt-4*`); one that denies wins.

    Some gateways take a name in any case, so what denies does too.
    """
    allowed, denied = identity.allowed_models, identity.denied_models
    if model is None:
        ruled = allowed is not None or denied
        return "It names no model, and which it may use is limited." if ruled else None
    if any(fnmatch.fnmatchcase(model.casefold(), pattern.casefold()) for pattern in denied):
        return "Its model is denied to this key."
    if allowed is not None and not any(fnmatch.fnmatchcase(model, pattern) for pattern in allowed):
        return "Its model is not one that this key may use."
    return None


def _invalid(index: int, field: str, what: str, hint: str) -> Invalid:
    name = f"requests.{index}.{field}"
    fields = [{"field": name, "detail": what}]
    return Invalid("invalid_target", f"{name}: {what}", hint, extra={"index": index, "fields": fields})
