"""The certificates that connections are checked against, read when they are first needed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable


class Trust:
    """The context that `make` gives, made once, in a thread: reading 140 certificates takes some 20 ms."""

    def __init__(self, make: Callable[[], ssl.SSLContext]) -> None:
        self._make = make
        self._making: asyncio.Future[ssl.SSLContext] | None = None

    def prepare(self) -> asyncio.Future[ssl.SSLContext]:
        """Begin, if nobody has; a name can be looked up meanwhile."""
        if self._making is None:
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
        return self._making

    async def context(self) -> ssl.SSLContext:
        """The context; raises OSError when its file cannot be read."""
        return await asyncio.shield(self.prepare())  # whoever gives up does not end it for the others
