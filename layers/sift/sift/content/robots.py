"""What a site's robots.txt allows (RFC 9309): fetched through the guard, read in a child, remembered for a day."""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from sift.content.child import Crashed
from sift.content.client import FetchLimits, GuardedClient
from sift.content.guard import Guard
from sift.errors import TargetFailed

#: A robots.txt is read up to here (RFC 9309, 2.5: at least 500 KiB), and one of over four times that is not taken.
READ_BYTES = 500 * 1024
MOST_BYTES = 4 * READ_BYTES
#: For how long (seconds) one is remembered (RFC 9309, 2.4: no more than a day), and that there was trouble with it.
REMEMBERED_S = 86_400.0
TROUBLE_S = 600.0
#: Sites that a process remembers.
SITES = 256
#: Bytes of packed files that a process remembers: some hold what does not pack.
KEPT_BYTES = 16 * 1024 * 1024
#: What its own fetch may take of the target's time, and its reading (seconds).
SHARE = 0.4
READING_S = 3.0
#: What had less time (seconds) than this for its fetch says nothing about the site, and counts for nobody else.
FAIR_S = 8.0
#: Addresses in a user agent are no names of robots (RFC 9309, 2.2.1).
_ADDRESSES = re.compile(r"\+?\b[a-z][a-z0-9+.-]*://[^\s();,]*|[^\s();,]+@[^\s();,]+", re.IGNORECASE)


class Reader(Protocol):
    """Reads a document in a child."""

    async def run(self, head: Any, body: bytes, wall_s: float, left_s: float) -> tuple[dict[str, Any], bytes]: ...


class Robots:
    """`forget` of what is remembered goes by `clock`, in seconds."""

    def __init__(
        self,
        guard: Guard,
        client: GuardedClient,
        reader: Reader,
        user_agent: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guard = guard
        self._client = client.with_limits(FetchLimits(MOST_BYTES, MOST_BYTES, redirects=5))
        self._reader = reader
        self._user_agent = user_agent
        self._clock = clock
        #: By origin: until when it counts, and the file, packed; None: nothing may be fetched.
        self._known: OrderedDict[str, tuple[float, bytes | None]] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    async def check(self, url: str, headers: Mapping[str, str], deadline_s: float) -> None:
        """Raises TargetFailed `robots_disallowed` where the site does not allow this address, and what a fetch raises
        where the site itself can't be reached."""
        ends_at = time.monotonic() + deadline_s
        page = self._guard.check(url).url
        parts = urlsplit(page)
        origin = f"{parts.scheme}://{parts.netloc}"
        packed = await self._file(origin, deadline_s * SHARE)
        if packed is None:
            raise _disallowed("Its robots.txt can't be had, which counts as a no.", "Try it again later.")
        body = zlib.decompress(packed)
        if not body.strip():
            return
        agent = {name.lower(): value for name, value in headers.items()}.get("user-agent", self._user_agent)
        head = {"mode": "robots", "url": page, "content_type": "text/plain", "agent": _ADDRESSES.sub("", agent)}
        left_s = ends_at - time.monotonic()
        try:
            answer, _ = await self._reader.run(head, body, READING_S, left_s)
        except (Crashed, TargetFailed) as error:
            if left_s < 2 * READING_S and not isinstance(error, Crashed):
                raise  # it had no time
            self._known[origin] = self._clock() + TROUBLE_S, None  # a file that hangs its reader does so once
            raise _disallowed("Its robots.txt can't be read, which counts as a no.") from error
        meta = answer.get("meta")
        if not isinstance(meta, dict) or meta.get("allowed") is not True:
            raise _disallowed("The site's robots.txt does not allow this address.")

    async def _file(self, origin: str, deadline_s: float) -> bytes | None:
        async with self._locks.setdefault(origin, asyncio.Lock()):  # the others of a batch wait for the first
            try:
                known = self._known.get(origin)
                if known is None or known[0] <= self._clock():
                    known = await self._ask(origin, deadline_s)
                    self._known[origin] = known
                    while len(self._known) > SITES or self._kept() > KEPT_BYTES:
                        self._known.popitem(last=False)
                self._known.move_to_end(origin)
                return known[1]
            finally:
                self._locks.pop(origin, None)

    def _kept(self) -> int:
        return sum(len(packed or b"") for _, packed in self._known.values())

    async def _ask(self, origin: str, deadline_s: float) -> tuple[float, bytes | None]:
        elsewhere: list[str] = []

        def follow(url: str) -> bool:
            elsewhere.append(url)
            return True

        try:
            fetched = await self._client.fetch(f"{origin}/robots.txt", deadline_s, may_follow=follow)
        except TargetFailed as error:
            if error.code == "timeout" and deadline_s < FAIR_S:
                raise
            if error.code == "http_error" and error.status is not None and error.status < 500:
                return self._clock() + REMEMBERED_S, zlib.compress(b"")  # there is none: all is allowed
            own = {"http_error", "too_large", "too_many_redirects", "damaged", "timeout", "invalid_url"}
            if error.code not in own and not elsewhere:
                raise  # the page would fail like it
            return self._clock() + TROUBLE_S, None
        return self._clock() + REMEMBERED_S, zlib.compress(fetched.body[:READ_BYTES])


def _disallowed(detail: str, hint: str = "") -> TargetFailed:
    return TargetFailed(
        "robots_disallowed", detail, hint or "Leave it out, or ask the site; `robots: false` passes over its wish."
    )
