"""Recovery of a page that is gone: the newest copy that a web archive holds of it, read in its place.

The archive is asked as the Wayback Machine is: an availability API that names the closest capture, and replay
addresses `{base}/{14 digits}id_/{url}` that answer the bytes as they were captured. Both are fetched through the
guard like any page, without anything that the caller sent along to the page itself.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlsplit

from sift.content.client import Fetched, FetchLimits, GuardedClient
from sift.content.guard import Guard
from sift.errors import TargetBusy, TargetFailed

#: An availability answer is a few hundred bytes; what is larger is something else.
API_LIMITS = FetchLimits(wire_bytes=64 * 1024, decoded_bytes=64 * 1024, redirects=2)
#: Of the time that a target has left, what the archive may take: the rest is for reading what it gave.
SHARE = 0.8
_GONE = frozenset({404, 410})
_REPLAY = re.compile(r"/([0-9]{14})id_/(.+)")
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"[^"]*"|[^",;\s]*))*)')
_REL = re.compile(r'\brel\s*=\s*(?:"([^"]*)"|([^",;\s]*))', re.IGNORECASE)


def is_gone(error: TargetFailed) -> bool:
    """Say whether a failure means that the page is gone for good: no such page, no such host, a broken server.

    Never for what the guard refused, nor for a page that is there and can't be read.
    """
    status = error.status or 0
    if error.code == "http_error":
        return status in _GONE or status >= 500
    # `busy` becomes a failure when it has lasted: a 5xx by then is more than a passing trouble.
    return error.code in ("dns_failed", "tls_failed") or (error.code == "busy" and status >= 500)


class _NoCopy(Exception):
    """The archive gave nothing to use; the message says why, as a warning."""


class Archive:
    """One archive: `api` is its availability API, `replay` the base of its replay addresses; "" turns it off."""

    def __init__(self, guard: Guard, client: GuardedClient, api: str, replay: str) -> None:
        self._guard = guard
        self._client = client
        self._lookup = client.with_limits(API_LIMITS)
        self._api = api
        self._replay = replay.rstrip("/")

    async def recover(self, url: str, error: TargetFailed, deadline_s: float) -> Fetched:
        """The newest copy of `url`, which failed with `error`.

        Without one, `error` is raised as it came, with a warning in its meta, whatever the archive did.
        """
        left_s = max(0.0, deadline_s * SHARE)
        try:
            async with asyncio.timeout(left_s):
                page = self._guard.check(url).url
                moment = await self._find(page, left_s)
                return await self._read(page, moment, error, left_s)
        except _NoCopy as none:
            warning = str(none)
        except (TargetFailed, TargetBusy) as failure:
            warning = f"The archive gave no copy: {failure.detail}"
        except TimeoutError:
            warning = "The archive gave no copy in time."
        error.meta = {**error.meta, "warnings": [*error.meta.get("warnings", ()), warning]}
        raise error

    async def _find(self, page: str, left_s: float) -> str:
        if not (self._api and self._replay):
            raise _NoCopy("No archive is set up to recover the page from.")
        mark = "&" if "?" in self._api else "?"
        answer = await self._lookup.fetch(f"{self._api}{mark}url={quote(page, safe='')}", left_s)
        moment = find_closest(answer.body)
        if moment is None:
            raise _NoCopy("The archive has no copy of the page.")
        return moment

    async def _read(self, page: str, moment: str, error: TargetFailed, left_s: float) -> Fetched:
        # Built here: an address in the archive's answer could lead anywhere.
        copy = await self._client.fetch(f"{self._replay}/{moment}id_/{page}", left_s, may_follow=self._is_replay)
        moment, original = self._split(copy.final_url) or (moment, page)
        links = copy.headers.get("link", "")
        original = self._spell(find_original(links)) or self._spell(original) or page
        recovered = {
            "archive": urlsplit(copy.final_url).hostname,
            "url": copy.final_url,
            "captured_at": _say(read_memento(copy.headers.get("memento-datetime", "")) or read_moment(moment)),
            "original_status": error.status,
            "original_error": error.code,
        }
        return dataclasses.replace(
            copy, url=page, final_url=original, etag=None, last_modified=None, recovered=recovered
        )

    def _is_replay(self, url: str) -> bool:
        """Whether an address is a capture's bytes at this archive, as its redirects to the nearest capture are."""
        return self._split(url) is not None

    def _split(self, url: str) -> tuple[str, str] | None:
        """Timestamp and original address of a replay address; None for any other."""
        base = self._spell(self._replay)
        spelled = self._spell(url)
        if base is None or spelled is None or not spelled.startswith(base):
            return None
        found = _REPLAY.fullmatch(spelled[len(base.rstrip("/")) :])
        return None if found is None or read_moment(found[1]) is None else (found[1], found[2])

    def _spell(self, url: str | None) -> str | None:
        """A URL in the guard's spelling; None for one that it refuses."""
        try:
            return None if url is None else self._guard.check(url).url
        except TargetFailed:
            return None


def find_closest(body: bytes) -> str | None:
    """The timestamp (14 digits) of the capture in an availability answer; None when it has none that can be used.

    Raises TargetFailed `damaged` for what is no such answer.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise TargetFailed("damaged", "Its answer cannot be read.", "Try it again later.") from None
    snapshots = found.get("archived_snapshots") if isinstance(found, dict) else None
    closest: Any = snapshots.get("closest") if isinstance(snapshots, dict) else None
    if not isinstance(closest, dict) or closest.get("available") is not True:
        return None
    # A captured redirect is fine, since its replay is followed; a captured error is no copy of the page.
    if str(closest.get("status", "200"))[:1] not in ("2", "3"):
        return None
    moment = closest.get("timestamp")
    return moment if isinstance(moment, str) and read_moment(moment) is not None else None


def read_moment(text: str) -> datetime | None:
    """A timestamp of 14 digits, in UTC; None when it is none."""
    if not re.fullmatch(r"[0-9]{14}", text):
        return None
    try:
        return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def read_memento(value: str) -> datetime | None:
    """A Memento-Datetime header (RFC 7089), in UTC; None without a valid one."""
    try:
        moment = parsedate_to_datetime(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def find_original(links: str) -> str | None:
    """The target of the link `rel="original"` (RFC 7089) in a Link header, or None."""
    for target, parameters in _LINK.findall(links):
        rel = _REL.search(parameters)
        if rel is not None and "original" in (rel[1] or rel[2] or "").lower().split():
            return str(target)
    return None


def _say(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds").replace("+00:00", "Z")
