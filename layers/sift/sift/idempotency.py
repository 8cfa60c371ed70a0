"""The hash under which the same work is recognised as the same."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no white space: equal values give equal bytes, however they were sent."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def content_hash(caller: str, kind: str, work: Any) -> str:
    """SHA-256 (hex) over caller, kind and the work: the targets with every option that can change a result."""
    return hashlib.sha256(canonical(["content", caller, kind, work])).hexdigest()


def key_hash(caller: str, key: str) -> str:
    """SHA-256 (hex) that stands for a caller's own `Idempotency-Key`; it can never equal a content hash."""
    return hashlib.sha256(canonical(["key", caller, key])).hexdigest()
