"""What the services need of the bucket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Blobs(Protocol):
    """Named bytes. Every method raises Unavailable when the bucket does not answer."""

    async def put(self, key: str, body: bytes, media_type: str) -> None: ...

    async def get(self, key: str) -> bytes | None:
        """The bytes, or None when there is no such blob (any more)."""
        ...

    async def remove(self, keys: Sequence[str]) -> None:
        """Delete these; one that is not there is none too many."""
        ...

    async def link(self, key: str, seconds: int) -> str:
        """A URL that anyone may read the blob with, for this long."""
        ...


def content_key(job_id: str, index: int, lease: int) -> str:
    """A target's content; the lease is part of it, so that a late worker can't overwrite its successor's."""
    return f"jobs/{job_id}/{index}/{lease}"


def segment_key(job_id: str, number: int) -> str:
    """A segment of targets as submitted."""
    return f"jobs/{job_id}/specs/{number}"
