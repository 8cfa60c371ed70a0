"""The bodies of the HTTP API."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sift.jobs import MAX_WINDOW, Kind, Status
from sift.model_requests import MAX_MODEL_CHARS, MAX_PATH_CHARS
from sift.targets import FetchOptions
from sift.webhooks import JOB_ENDED, DeliveryState, Event, check_headers

#: Longer than any URL that a browser or server takes (RFC 9110 asks for at least 8,000 octets).
URL_CHARS = 8_192


def _check_url(url: str) -> str:
    """Only what makes it no http(s) URL at all; whether it may be fetched is the guard's to say, per target."""
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url):
        raise PydanticCustomError("bad_url", "holds a space or a control character")
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        raise PydanticCustomError("bad_url", "is not a URL") from None
    if parts.scheme.lower() not in {"http", "https"}:
        raise PydanticCustomError("bad_url", "must start with http:// or https://")
    if not host:
        raise PydanticCustomError("bad_url", "names no host")
    return url


Url = Annotated[str, Field(min_length=1, max_length=URL_CHARS), AfterValidator(_check_url)]


class _Strict(BaseModel):
    # Inputs may be credentials: no error shows them.
    # Built when first used, as those of answers: a cold start would pay for all of them.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True)


class _Answer(BaseModel):
    """What is answered; the document alone reads these models."""

    model_config = ConfigDict(defer_build=True)


class TargetRequest(_Strict):
    """One URL to fetch."""

    url: Url = Field(examples=["https://example.com/article"])
    options: FetchOptions = Field(default_factory=FetchOptions, description="They win over those of the job.")
    id: str | None = Field(default=None, min_length=1, max_length=200, description="Your own id for it.")


class ModelRequest(_Strict):
    """One request to the model gateway."""

    path: str = Field(
        description=f"Absolute, normalised, at most {MAX_PATH_CHARS} characters, and one that the deployment allows.",
        examples=["/v1/chat/completions"],
    )
    model: str | None = Field(
        default=None, description=f"At most {MAX_MODEL_CHARS} characters; where the body names one, the same."
    )
    body: dict[str, Any] = Field(description="What the gateway is sent: a JSON object of at most 1 MiB.")
    id: str | None = Field(default=None, min_length=1, max_length=200, description="Your own id for it.")


Label = Annotated[str, Field(max_length=512)]


Metadata = dict[Annotated[str, Field(min_length=1, max_length=64)], Label]


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    try:
        return check_headers(headers)
    except ValueError as error:
        raise PydanticCustomError("bad_headers", "{reason}", {"reason": str(error)}) from None


class WebhookRequest(_Strict):
    """Where the events of a job are posted, signed as Standard Webhooks are."""

    url: Url = Field(examples=["https://example.com/hooks/sift"])
    events: list[Event] = Field(default_factory=lambda: [JOB_ENDED], min_length=1, max_length=16)
    headers: Annotated[dict[str, str], AfterValidator(_check_headers)] = Field(
        default_factory=dict, description="Sent with every post: `Authorization`, and `X-` headers of your own."
    )
    metadata: Metadata = Field(default_factory=dict, max_length=16, description="Yours; it is in every post.")


class JobRequest(_Strict):
    """A batch of URLs to fetch, or of requests to the model gateway: exactly one of `targets` and `requests`."""

    targets: list[TargetRequest] = Field(default_factory=list, description="URLs, for a fetch job.")
    requests: list[ModelRequest] = Field(default_factory=list, description="Requests, for an inference job.")
    options: FetchOptions = Field(
        default_factory=FetchOptions, description="For every target without its own; not with `requests`."
    )
    window: int = Field(default=MAX_WINDOW, strict=True, ge=1, le=MAX_WINDOW, description="Targets out at once.")
    metadata: Metadata = Field(default_factory=dict, max_length=16, description="Yours; it is shown with the job.")
    webhook: WebhookRequest | None = Field(default=None, description="Where to post what happens to the job.")
    fresh: bool = Field(default=False, strict=True, description="Run it even if the same work was submitted before.")

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        sent = self.model_fields_set
        if {"targets", "requests"} <= sent:
            raise PydanticCustomError("two_kinds", "requests: not together with targets")
        if "requests" in sent and "options" in sent:
            raise PydanticCustomError("no_options", "options: requests take none")
        if not (self.targets or self.requests):
            raise PydanticCustomError("no_targets", "targets: at least one is needed")
        return self


class FetchRequest(_Strict):
    """One URL to fetch now."""

    # Whether it can be fetched is the guard's to say: `invalid_url` is one error, wherever it comes from.
    url: str = Field(min_length=1, max_length=URL_CHARS, examples=["https://example.com/article"])
    options: FetchOptions = Field(default_factory=FetchOptions)


class Fetched(_Answer):
    """A target that was fetched at once: its content, or the link to one that is too large for JSON."""

    content: str | None = Field(default=None, description="At most 4 MB; else there is `content_url`.")
    encoding: Literal["base64"] | None = Field(default=None, description="Set where `content` is not text.")
    content_url: str | None = Field(default=None, description="Where to read it, without a key, for five minutes.")
    meta: dict[str, Any] = Field(description="As of a slot; `content_type` is that of the content.")


class JobCounts(_Answer):
    """Targets by status; they add up to `total`."""

    total: int
    pending: int
    running: int
    done: int
    failed: int
    cancelled: int


class JobError(_Answer):
    """Why a job ended before its targets did."""

    code: str
    detail: str


class Webhook(_Answer):
    """How the posts of a job go."""

    url: str = Field(description="Without its query.")
    events: list[Event]
    state: Literal["pending"] | DeliveryState = Field(
        description="`failed`: a post was given up, and stays; `delivered`: the last one that counts was taken."
    )
    last_status: int | None = Field(description="HTTP status of the last answer that was noted.")
    last_error: str | None = Field(description="Code of what was wrong with it.")


class Job(_Answer):
    """A job as it stands. Times are RFC 3339 in UTC."""

    id: str
    kind: Kind
    tenant: str
    actor: str
    status: Status
    counts: JobCounts
    bytes: int = Field(description="Content stored so far, in bytes.")
    window: int
    created_at: str
    started_at: str | None
    ended_at: str | None
    deadline_at: str
    expires_at: str | None = Field(description="When it will be forgotten; null: never.")
    error: JobError | None
    metadata: dict[str, str]
    retry_of: str | None = Field(description="The job whose unfinished targets it runs again.")
    webhook: Webhook | None = Field(default=None, description="Null without one.")
    reused: bool = Field(default=False, description="An earlier submission of the same work made it.")


class JobPage(_Answer):
    """Jobs, newest first."""

    jobs: list[Job]
    next: str | None = Field(description="Pass it as `cursor` for the next page; null at the end.")


class TargetError(_Answer):
    """Why a target has no content."""

    code: str
    detail: str
    hint: str
    status: int | None = Field(description="HTTP status of the last answer, where there was one.")


class Target(_Answer):
    """One target's slot: of a fetch job with `url`, of an inference job with `path` and `model`."""

    index: int
    id: str | None
    url: str | None = Field(default=None, description="Of a fetch job.")
    path: str | None = Field(default=None, description="Of an inference job.")
    model: str | None = Field(default=None, description="Of an inference job; null where the request names none.")
    status: Literal["pending", "running", "done", "failed", "cancelled"]
    attempts: int
    media_type: str | None = Field(description="Of the content as stored.")
    bytes: int | None
    chars: int | None
    error: TargetError | None
    meta: dict[str, Any] | None
    finished_at: str | None
    content: str | None = Field(default=None, description="When asked for, finished, and at most 4 MB.")
    encoding: Literal["base64"] | None = Field(default=None, description="Set where `content` is not UTF-8 text.")
    content_url: str | None = Field(default=None, description="Where to read content that is over 4 MB.")
    next_offset: int | None = Field(
        default=None, description="With `offset` or `max_chars`: the `offset` to go on at; null at the end."
    )


class TargetPage(_Answer):
    """Slots in submit order."""

    targets: list[Target]
    next: str | None = Field(description="Pass it as `cursor` for the next page; null at the end.")


class Problem(_Answer):
    """An error, as application/problem+json (RFC 9457). `code` is stable, `hint` says what to do next."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str
    request_id: str


class Health(_Answer):
    """The API answers."""

    status: Literal["ok"]
    version: str
