"""What the services need of the bucket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Protocol

#: S3 lists and deletes up to 1,000 objects in one request.
REMOVE_BATCH = 1_000
#: Every part of an upload but the last has at least this many bytes (S3 user guide, multipart upload limits).
LEAST_PART = 5 * 1024 * 1024


class Blobs(Protocol):
    """Named bytes. Every method raises Unavailable when the bucket does not answer."""

    async def put(self, key: str, body: bytes, media_type: str) -> None: ...

    async def put_file(self, key: str, file: BinaryIO, media_type: str) -> None:
        """Put what a file on disk holds from where it stands, in one piece and without reading it whole.

        Until it returns, and when it fails, nothing is there under a new key. Cancelled, it may still come to be.
        """
        ...

    async def get(self, key: str) -> bytes | None:
        """The bytes, or None when there is no such blob (any more)."""
        ...

    async def remove(self, prefix: str) -> bool:
        """Delete blobs whose keys begin so, up to REMOVE_BATCH of them; whether there may be more."""
        ...

    async def link(self, key: str, seconds: int) -> str:
        """A URL that anyone may read the blob with, for this long."""
        ...


class UploadLost(Exception):
    """The upload is not there any more, or its parts are not those that were named."""


class Uploads(Protocol):
    """Blobs that are written in parts; none is seen before it is complete. Raises Unavailable as Blobs does."""

    async def begin_upload(self, key: str, media_type: str) -> str:
        """A new upload's id. What is never completed costs nothing but room, for a day."""
        ...

    async def put_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        """Store part `number` (from 1) and give its tag. Raises UploadLost."""
        ...

    async def complete_upload(self, key: str, upload: str, tags: Sequence[str]) -> None:
        """Make the blob of exactly these parts. Raises UploadLost."""
        ...

    async def abort_upload(self, key: str, upload: str) -> None:
        """Drop the upload; one that is gone is no error."""
        ...

    async def exists(self, key: str) -> bool:
        """Whether there is such a blob, whole."""
        ...


class Bucket(Blobs, Uploads, Protocol):
    """All of it."""


def job_prefix(job_id: str) -> str:
    """What all keys of a job begin with."""
    return f"jobs/{job_id}/"


def content_key(job_id: str, index: int, lease: int) -> str:
    """A target's content; the lease is part of it, so that a late worker can't overwrite its successor's."""
    return f"{job_prefix(job_id)}{index}/{lease}"


def answer_key(name: str) -> str:
    """A content that was fetched at once and belongs to no job; the bucket's lifecycle removes it within days."""
    return f"answers/{name}"


def input_key(job_id: str, index: int) -> str:
    """The body of a request that is too large for the table and a message."""
    return f"{job_prefix(job_id)}inputs/{index}"


def results_prefix(job_id: str) -> str:
    """What the keys of a job's results file begin with."""
    return f"{job_prefix(job_id)}results/"


def results_key(job_id: str, attempt: str) -> str:
    """A job's results file, by the attempt that wrote it."""
    return f"{results_prefix(job_id)}{attempt}.jsonl.gz"


def segment_key(job_id: str, number: int) -> str:
    """A segment of targets as submitted."""
    return f"{job_prefix(job_id)}specs/{number}"
