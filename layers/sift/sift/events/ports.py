"""What the services need of the bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

JOB_ENDED = "Sift Job Ended"


class Bus(Protocol):
    """An event bus. `publish` raises Unavailable when the event was not taken."""

    async def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None: ...
