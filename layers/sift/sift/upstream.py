"""Sends one request of a job to the operator's model gateway, and spools its response to disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO


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
