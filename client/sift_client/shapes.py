"""The JSON shapes of the API as the client sees them; fields of a newer service are kept as they come."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

JobStatus = Literal["queued", "running", "done", "partial", "failed", "cancelled", "pausing", "paused", "cancelling"]

#: A job in one of these does not change any more.
ENDED_JOB = frozenset({"done", "partial", "failed", "cancelled"})

#: A target in one of these does not change any more.
ENDED_TARGET = frozenset({"done", "failed", "cancelled"})


class Counts(TypedDict):
    """How many targets are in which status; `total` is the sum of the others."""

    total: int
    pending: int
    running: int
    done: int
    failed: int
    cancelled: int


class Job(TypedDict, total=False):
    """The light status of a job. Times are RFC 3339 in UTC; `bytes` counts its stored content."""

    id: str
    kind: str
    tenant: str
    actor: str
    status: JobStatus
    counts: Counts
    bytes: int
    window: int
    created_at: str
    started_at: str | None
    ended_at: str | None
    deadline_at: str | None
    expires_at: str | None
    error: Any
    metadata: dict[str, Any] | None
    retry_of: str | None
    reused: bool


class TargetError(TypedDict, total=False):
    """Why a target failed; `status` is the HTTP status of the last answer where there was one."""

    code: str
    detail: str
    hint: str
    status: int | None


class Slot(TypedDict, total=False):
    """One target of a job, with `url`, or `path` and `model` of a request. `content` is there when asked for; over 4 MB
    `content_url` takes its place."""

    index: int
    id: str | None
    url: str
    path: str
    model: str | None
    status: Literal["pending", "running", "done", "failed", "cancelled"]
    attempts: int
    media_type: str | None
    bytes: int | None
    chars: int | None
    error: TargetError | None
    meta: dict[str, Any] | None
    finished_at: str | None
    content: str
    encoding: Literal["base64"]
    content_url: str
    next_offset: int | None


def address(slot: Slot) -> str:
    """What a slot is about: its URL, or the path of its request."""
    return slot.get("url") or slot.get("path") or ""


class Fetched(TypedDict, total=False):
    """A target that was fetched at once. Content over 4 MB is behind `content_url`, which needs no key."""

    content: str
    encoding: Literal["base64"]
    content_url: str
    meta: dict[str, Any]


class Target(TypedDict, total=False):
    """One target to submit: `url`, its own `options` (they win over the job's) and an `id` of your choice."""

    url: str
    options: dict[str, Any]
    id: str
