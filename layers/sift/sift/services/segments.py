"""Reads what a job's targets are, wherever that is kept."""

from __future__ import annotations

from collections.abc import Sequence

from sift.blobs.ports import Blobs
from sift.errors import Unavailable
from sift.specs import AnySpec, unpack_specs
from sift.store.ports import Store


async def read_segment(store: Store, blobs: Blobs, job_id: str, number: int) -> Sequence[AnySpec]:
    """Segment `number` of a job's targets. Raises Unavailable where it is missing, which only a fault explains."""
    segment = await store.get_segment(job_id, number)
    if segment is None:
        raise Unavailable(f"Segment {number} of {job_id} is missing.")
    if segment.blob is None:
        return segment.specs
    data = await blobs.get(segment.blob)
    if data is None:
        raise Unavailable(f"Segment {number} of {job_id} is missing in the bucket.")
    return unpack_specs(data)
