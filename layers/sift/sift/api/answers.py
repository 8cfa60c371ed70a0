"""The bodies that the HTTP API answers, as its document describes them: no request waits for these models."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from sift.jobs import Kind, Status
from sift.webhooks import DeliveryState, Event


class Fetched(BaseModel):
    """A target that was fetched at once: its content, or the link to one that is too large for JSON."""

    content: str | None = Field(default=None, description="At most 4 MB; else there is `content_url`.")
    encoding: Literal["base64"] | None = Field(default=None, description="Set where `content` is not text.")
    content_url: str | None = Field(default=None, description="Where to read it, without a key, for five minutes.")
    meta: dict[str, Any] = Field(description="As of a slot; `content_type` is that of the content.")


class JobCounts(BaseModel):
    """Targets by status; they add up to `total`."""

    total: int
    pending: int
    running: int
    done: int
    failed: int
    cancelled: int


class JobError(BaseModel):
    """Why a job ended before its targets did."""

    code: str
    detail: str


class Webhook(BaseModel):
    """How the posts of a job go."""

    url: str = Field(description="Without its query.")
    events: list[Event]
    state: Literal["pending"] | DeliveryState = Field(
        description="`failed`: a post was given up, and stays; `delivered`: the last one that counts was taken."
    )
    last_status: int | None = Field(description="HTTP status of the last answer that was noted.")
    last_error: str | None = Field(description="Code of what was wrong with it.")


class Job(BaseModel):
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


class JobPage(BaseModel):
    """Jobs, newest first."""

    jobs: list[Job]
    next: str | None = Field(description="Pass it as `cursor` for the next page; null at the end.")


class TargetError(BaseModel):
    """Why a target has no content."""

    code: str
    detail: str
    hint: str
    status: int | None = Field(description="HTTP status of the last answer, where there was one.")


class Target(BaseModel):
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


class TargetPage(BaseModel):
    """Slots in submit order."""

    targets: list[Target]
    next: str | None = Field(description="Pass it as `cursor` for the next page; null at the end.")


class Problem(BaseModel):
    """An error, as application/problem+json (RFC 9457). `code` is stable, `hint` says what to do next."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str
    request_id: str


class Health(BaseModel):
    """The API answers."""

    status: Literal["ok"]
    version: str
