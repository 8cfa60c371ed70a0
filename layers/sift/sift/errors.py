"""Every error that sift raises on purpose, as one tree with stable codes.

    SiftError
    ├── RequestRefused        the caller's request is not accepted; nothing was stored
    │   ├── Malformed         400
    │   ├── Invalid           422
    │   ├── TooLarge          413
    │   ├── Unauthenticated   401
    │   ├── Forbidden         403
    │   ├── NotFound          404
    │   ├── Conflict          409
    │   ├── CallerBusy        429, retry later
    │   └── ServiceBusy       503, retry later
    ├── TargetFailed          one target's permanent outcome; stored in its slot
    ├── TargetBusy            one target's passing trouble; it is put back and tried again
    ├── TargetCut             one target's answer broke off midway; it is tried again a few times
    ├── Unavailable           a port (table, queue, bucket, bus) did not answer; safe to repeat
    └── DataUnreadable        something stored or queued is of a version this code does not know

`code` is stable and made for programs, `detail` for people, `hint` says what to do next.
The HTTP status of each is set in one place, `sift.api.problems`.
"""

from __future__ import annotations

from typing import Any

#: Every code that a target can end with. What else a child process may claim is not believed.
TARGET_CODES = frozenset({
    "invalid_url", "blocked_address", "dns_failed", "tls_failed", "connect_failed", "timeout", "too_large",
    "too_many_redirects", "http_error", "unsupported_media", "encrypted", "damaged", "empty", "bad_pages", "bad_grep",
    "bad_jq", "filter_limit", "no_match", "unsupported_option", "busy", "robots_disallowed", "over_budget", "crashed",
    "cancelled", "deadline", "model_not_allowed",
})  # fmt: skip


class SiftError(Exception):
    """Base of all: `code`, `detail` and `hint` are plain text without secrets or private addresses."""

    def __init__(self, code: str, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.hint = hint


class RequestRefused(SiftError):
    """A request that is not accepted. `retry_after` is in seconds, or None when repeating is of no use."""

    def __init__(
        self,
        code: str,
        detail: str,
        hint: str = "",
        *,
        retry_after: int | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(code, detail, hint)
        self.retry_after = retry_after
        self.extra = extra or {}


class Malformed(RequestRefused):
    """The request cannot be read at all."""


class Invalid(RequestRefused):
    """The request can be read, and asks for something that is not allowed or does not exist."""


class TooLarge(RequestRefused):
    """The request body is over the limit."""


class Unauthenticated(RequestRefused):
    """No credential, or one that is not valid. The detail is the same for whatever is wrong with a credential."""

    def __init__(
        self,
        detail: str = "The request has no valid API key or token.",
        hint: str = "Send `Authorization: Bearer sift_...` or `x-api-key: sift_...`.",
    ) -> None:
        super().__init__("unauthenticated", detail, hint)


class Forbidden(RequestRefused):
    """A valid credential without the right to this."""


class NotFound(RequestRefused):
    """It does not exist for this caller."""


class Conflict(RequestRefused):
    """The state of the thing does not allow it; repeating the request will not help."""


class CallerBusy(RequestRefused):
    """A cap of this caller is reached."""


class ServiceBusy(RequestRefused):
    """A cap of the whole service is reached."""


class TargetFailed(SiftError):
    """A target's permanent failure.

    `status` is the HTTP status of the last answer where there was one; `meta` holds what is known of the
    document all the same (final_url, media_type, ...).
    """

    def __init__(
        self,
        code: str,
        detail: str,
        hint: str = "",
        *,
        status: int | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(code, detail, hint)
        self.status = status
        self.meta = meta or {}


class TargetBusy(SiftError):
    """A target that asks to come back later (429, 503, connection refused).

    `retry_after` is in seconds; `meta` holds what is known of the document all the same.
    """

    def __init__(
        self,
        detail: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        super().__init__("busy", detail, "Submit it again later, or lower the window of the job.")
        self.retry_after = retry_after
        self.status = status
        self.meta = meta or {}


class TargetCut(SiftError):
    """An answer that broke off midway, or a connection that ended before there was one: nothing of it is kept.

    Whoever gives up on trying again ends the target with this code, detail and hint.
    """

    def __init__(self, detail: str) -> None:
        super().__init__("connect_failed", detail, "Look whether the server restarted, or gives up on long answers.")


class Unavailable(SiftError):
    """A port did not answer, was throttled or lost the race too often; the call may be repeated."""

    def __init__(self, detail: str) -> None:
        super().__init__("unavailable", detail, "Try again in a few seconds.")


class DataUnreadable(SiftError):
    """An item or message carries a version that this code does not know: it is refused, not guessed."""

    def __init__(self, detail: str) -> None:
        super().__init__("unreadable", detail, "Deploy the version of sift that wrote it.")
