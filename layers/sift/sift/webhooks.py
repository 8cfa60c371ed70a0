"""What a job may ask for with `webhook`, and how a post is signed: Standard Webhooks, standardwebhooks.com."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Event = Literal["job.started", "target.done", "target.failed", "job.ended"]
DeliveryState = Literal["retrying", "delivered", "failed"]

JOB_STARTED: Event = "job.started"
TARGET_DONE: Event = "target.done"
TARGET_FAILED: Event = "target.failed"
JOB_ENDED: Event = "job.ended"
EVENTS: tuple[Event, ...] = (JOB_STARTED, TARGET_DONE, TARGET_FAILED, JOB_ENDED)

#: How the state of a job says which events, its end apart, are asked for: it is read with every claim and has to stay
#: small.
BITS: Mapping[str, int] = {JOB_STARTED: 1, TARGET_DONE: 2, TARGET_FAILED: 4}

MOST_HEADERS = 10
VALUE_CHARS = 1_024
#: What says where a request came from or how it is routed is not the caller's to say, and what starts with
#: `webhook-` is the signature's.
_NAME = re.compile(r"authorization|x-[a-z0-9](?:[a-z0-9-]{0,60}[a-z0-9])?")
_NOT_YOURS = re.compile(r"x-(?:forwarded|real|client|original|amz|amzn|http|envoy|cluster)(?:-.*)?")
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")

SECRET_PREFIX = "whsec_"  # noqa: S105 (the form of a secret, by Standard Webhooks)
#: Random bytes of a secret; Standard Webhooks asks for 24 to 64.
SECRET_BYTES = 32
#: How long a secret still signs after the next one has been made, unless said otherwise (seconds).
OVERLAP_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the posts of a job go. `failed` is final: one of them was given up. `status` is the HTTP status of the last
    answer, `error` the code of what went wrong with the last post."""

    state: DeliveryState
    status: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Secrets:
    """A caller's secrets, each `whsec_` and base64: the one that counts, and the one before until a time in seconds."""

    current: str
    previous: str | None = None
    previous_until: int = 0

    def valid(self, now_s: int) -> list[str]:
        """Those that sign now, the newest first."""
        return [self.current, *([self.previous] if self.previous and self.previous_until > now_s else [])]


def new_secret() -> str:
    """A secret as a receiver's library takes it."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def mask(events: Iterable[str]) -> int:
    """The events in the short form that a state keeps."""
    return sum(BITS.get(event, 0) for event in set(events))


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers by lower-case name. Raises ValueError that names the first wrong one, and never shows a value."""
    checked: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        if not _NAME.fullmatch(key) or _NOT_YOURS.fullmatch(key):
            raise ValueError(f"the header {name[:40]!r} can't be set; Authorization can, and X- headers of your own")
        if key in checked:
            raise ValueError(f"the header {key} is there twice")
        if len(value) > VALUE_CHARS or not _VALUE.fullmatch(value):
            raise ValueError(f"the header {key} is not 1 to {VALUE_CHARS} printable ASCII characters")
        checked[key] = value
    if len(checked) > MOST_HEADERS:
        raise ValueError(f"there are more than {MOST_HEADERS} headers")
    return checked


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """One signature, `v1,` and base64: HMAC-SHA256 of id, timestamp and body."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def signed_headers(valid: Iterable[str], message_id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """The three headers of a post; a receiver takes any of the signatures that it knows the secret of."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(sign(secret, message_id, timestamp_s, body) for secret in valid),
    }
