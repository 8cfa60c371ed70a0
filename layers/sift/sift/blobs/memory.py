"""The bucket in memory, for tests and simulations."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import BinaryIO

from sift.blobs.ports import LEAST_PART, REMOVE_BATCH, UploadLost


class MemoryBlobs:
    """Blobs by key, with their media types; uploads by id, with key, media type and parts."""

    def __init__(self, least_part: int = LEAST_PART) -> None:
        self._least_part = least_part
        self._number = 0
        self.blobs: dict[str, tuple[bytes, str]] = {}
        self.uploads: dict[str, tuple[str, str, dict[int, bytes]]] = {}

    async def put(self, key: str, body: bytes, media_type: str) -> None:
        self.blobs[key] = (body, media_type)

    async def put_file(self, key: str, file: BinaryIO, media_type: str) -> None:
        await self.put(key, file.read(), media_type)

    async def get(self, key: str) -> bytes | None:
        found = self.blobs.get(key)
        return None if found is None else found[0]

    async def remove(self, prefix: str) -> bool:
        found = [key for key in self.blobs if key.startswith(prefix)]
        for key in found[:REMOVE_BATCH]:
            del self.blobs[key]
        return len(found) > REMOVE_BATCH

    async def link(self, key: str, seconds: int) -> str:
        return f"memory:{key}?seconds={seconds}"

    async def begin_upload(self, key: str, media_type: str) -> str:
        self._number += 1
        self.uploads[str(self._number)] = key, media_type, {}
        return str(self._number)

    async def put_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        self._parts(key, upload)[number] = body
        return _tag(body)

    async def complete_upload(self, key: str, upload: str, tags: Sequence[str]) -> None:
        parts = self._parts(key, upload)
        bodies = [parts.get(number, b"") for number in range(1, len(tags) + 1)]
        if [_tag(body) for body in bodies] != list(tags) or any(len(b) < self._least_part for b in bodies[:-1]):
            raise UploadLost(key)
        self.blobs[key] = b"".join(bodies), self.uploads.pop(upload)[1]

    async def abort_upload(self, key: str, upload: str) -> None:
        self.uploads.pop(upload, None)

    async def exists(self, key: str) -> bool:
        return key in self.blobs

    def _parts(self, key: str, upload: str) -> dict[int, bytes]:
        if upload not in self.uploads or self.uploads[upload][0] != key:
            raise UploadLost(key)
        return self.uploads[upload][2]


def _tag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
