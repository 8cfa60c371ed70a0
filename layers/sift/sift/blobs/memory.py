"""The bucket in memory, for tests and simulations."""

from __future__ import annotations

from typing import BinaryIO

from sift.blobs.ports import REMOVE_BATCH


class MemoryBlobs:
    """Blobs by key, with their media types."""

    def __init__(self) -> None:
        self.blobs: dict[str, tuple[bytes, str]] = {}

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
