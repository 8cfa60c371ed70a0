"""Where the bodies of requests are kept: small ones with the request itself, large ones in the bucket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sift.blob_keys import input_key
from sift.blobs.ports import Blobs
from sift.errors import NotFound
from sift.model_requests import INLINE_BODY_BYTES
from sift.specs import AnySpec, RequestSpec

#: Bodies on their way to the bucket at once.
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Input:
    """A body for the bucket: as text, or as the key of the one to copy."""

    text: str | None
    copied: str | None


def place(job_id: str, targets: Sequence[AnySpec]) -> tuple[Sequence[AnySpec], Mapping[str, Input]]:
    """The targets as a job keeps them, and what has to be in the bucket for them, by its key.

    A body that another job has in the bucket is to be copied: that job may be deleted.
    """
    inputs: dict[str, Input] = {}
    placed: list[AnySpec] = []
    for index, spec in enumerate(targets):
        if isinstance(spec, RequestSpec) and _is_large(spec):
            key = input_key(job_id, index)
            inputs[key] = Input(spec.body, spec.blob)
            spec = replace(spec, body=None, blob=key)
        placed.append(spec)
    return placed, inputs


async def store(blobs: Blobs, inputs: Mapping[str, Input]) -> None:
    """Put every input into the bucket. Raises NotFound when one that is to be copied is gone."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def put(key: str, wanted: Input) -> None:
        async with turns:
            body = await blobs.get(wanted.copied) if wanted.copied else (wanted.text or "").encode()
            if body is None:
                raise NotFound("not_found", "The job was deleted meanwhile.", "Submit its requests again.")
            await blobs.put(key, body, "application/json")

    ends = await asyncio.gather(*(put(key, wanted) for key, wanted in inputs.items()), return_exceptions=True)
    for end in ends:
        if end is not None:
            raise end


def _is_large(spec: RequestSpec) -> bool:
    return spec.body is None or len(spec.body.encode()) > INLINE_BODY_BYTES
