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
