"""The errors of the client.

SiftClientError
├── SiftApiError          the API answered with a problem
└── SiftConnectionError   no usable answer came, also after the retries
"""

from __future__ import annotations


class SiftClientError(Exception):
    """Base of all. `detail` says what happened, `hint` what to do next; both are made for people."""

    def __init__(self, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint


class SiftApiError(SiftClientError):
    """The API's own error (RFC 9457 problem).

    `code` is stable and made for programs; `status` is the HTTP status; `request_id` finds the request in the
    service's log; `retry_after` is in seconds, or None where repeating is of no use; `of_target` says that it is what
    became of the target of a `fetch`, and that sift itself did its part.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        hint: str = "",
        *,
        status: int,
        request_id: str | None = None,
        retry_after: float | None = None,
        of_target: bool = False,
    ) -> None:
        super().__init__(detail, hint)
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.of_target = of_target


class SiftConnectionError(SiftClientError):
    """The service could not be reached, or what answered was not sift."""
