"""The bus in memory, for tests and simulations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MemoryBus:
    """Keeps what was published."""

    def __init__(self) -> None:
        self.published: list[tuple[str, Mapping[str, Any]]] = []

    async def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        self.published.append((detail_type, detail))
