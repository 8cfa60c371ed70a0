"""The pipeline of one target: guard, fetch, decode, detect, extract in a child, and the envelope's meta."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sift.clashes import find_clash
from sift.connections import make_tls_context
from sift.content.addresses import parse_allow
from sift.content.answers import Answerer
from sift.content.archive import Archive, is_gone
from sift.content.child import Crashed, ForkServer
from sift.content.client import Fetched, FetchLimits, GuardedClient
from sift.content.denials import parse_deny
from sift.content.filters import OVERTIME, overtime
from sift.content.guard import Guard, Resolver, SystemResolver
from sift.content.pages import check_ranges
from sift.content.phases import PhaseTimeouts
from sift.content.robots import Robots
from sift.content.sandbox import ChildLimits
from sift.content.sniff import parse_media_type, sniff
from sift.content.trust import Trust
from sift.errors import TARGET_CODES, TargetFailed
from sift.targets import Content, FetchOptions

_META_TEXTS = ("charset", "title", "author", "published", "language", "description", "canonical", "site_name", "image")


@dataclass(frozen=True)
class PipelineSettings:
    """All that a pipeline can be told.

    `guard_allow`: `address-or-cidr[:port]`, comma-separated; "" is the public internet and nothing beyond.
    `guard_deny`: host names, addresses and CIDRs, comma-separated, that are refused all the same.
    `archive_api`, `archive_replay`: where `recover` asks for copies and reads them; "" is no recovery.
    `robots`: whether a site's robots.txt is heeded where a target does not say.
    `ca_file`: certificates to trust in place of the bundled ones, for networks with their own authority.
    `children`: documents parsed at the same time; each may use `child.memory_bytes`, so their sum
    must fit the function's memory. `extract_s`: wall seconds for one document.
    """

    guard_allow: str = ""
    guard_deny: str = ""
    user_agent: str = "sift/0.1"
    archive_api: str = ""
    archive_replay: str = ""
    robots: bool = False
    ca_file: str | None = None
    limits: FetchLimits = field(default_factory=FetchLimits)
    timeouts: PhaseTimeouts = field(default_factory=PhaseTimeouts)
    child: ChildLimits = field(default_factory=ChildLimits)
    children: int = 2
    extract_s: float = 9.0
    output_bytes: int = 64 * 1024 * 1024


class Pipeline:
    """Fetches and reads targets; lives as long as the execution environment, on one event loop.

    `resolver` and `now` are for tests and for networks with a resolver of their own; `answerer` asks the model that
    answers questions, where there is one.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        *,
        resolver: Resolver | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        extractor: ForkServer | None = None,
        answerer: Answerer | None = None,
    ) -> None:
        self._settings = settings
        self._answerer = answerer
        self._now = now
        self._own_resolver = SystemResolver() if resolver is None else None
        guard = Guard(
            resolver or self._own_resolver or SystemResolver(),
            parse_allow(settings.guard_allow),
            parse_deny(settings.guard_deny),
        )
        trust = Trust(lambda: make_tls_context(settings.ca_file))
        self._client = GuardedClient(guard, settings.user_agent, trust, settings.limits, settings.timeouts)
        self._archive = Archive(guard, self._client, settings.archive_api, settings.archive_replay)
        self._extractor = extractor or ForkServer(
            "sift.content.extraction:extract",
            "sift.content.preparation:prepare",
            settings.child,
            parallel=settings.children,
            output_bytes=settings.output_bytes,
        )
        self._robots = Robots(guard, self._client, self._extractor, settings.user_agent)

    async def run(
        self, url: str, options: FetchOptions, deadline_s: float, *, gone: TargetFailed | None = None
    ) -> Content:
        """Fetch and read one target within `deadline_s` seconds, whatever happens.

        `gone` is why the page is given up: it is not asked for again, only an archived copy of it, if `recover` is set.
        Raises TargetFailed with a target code (`meta` then holds what is known) or TargetBusy.
        """
        started = time.monotonic()
        if clash := find_clash(options):
            raise TargetFailed(clash.code, clash.detail, clash.hint)
        if options.pages is not None:
            check_ranges(options.pages)
        try:
            async with asyncio.timeout(deadline_s):
                if options.mode != "raw" or options.filters:
                    self._extractor.start()  # it loads its libraries while the page is on its way
                fetched = await self._fetch(url, options, deadline_s, gone)
                meta = self._describe(fetched)
                if fetched.not_modified:
                    return Content(b"", "text/plain; charset=utf-8", meta | {"elapsed_ms": _since(started)})
                try:
                    content = await self._read(fetched, options, deadline_s - (time.monotonic() - started))
                    if options.question is not None and self._answerer is not None:
                        left_s = deadline_s - (time.monotonic() - started)
                        content = await self._answerer.answer(options.question, content, left_s)
                except TargetFailed as error:
                    error.status = error.status or fetched.status
                    error.meta = {**meta, **error.meta}
                    raise
        except TimeoutError as error:
            raise TargetFailed("timeout", "The target took too long.", "Try it again later.") from error
        warnings = [*meta["warnings"], *content.meta.get("warnings", [])]
        meta |= {**content.meta, "warnings": warnings}
        meta["elapsed_ms"] = _since(started)
        return Content(content.body, content.media_type, meta)

    async def aclose(self) -> None:
        """End the child processes and the resolver's threads."""
        await self._extractor.aclose()
        if self._own_resolver is not None:
            self._own_resolver.close()

    async def _fetch(self, url: str, options: FetchOptions, deadline_s: float, gone: TargetFailed | None) -> Fetched:
        """The page, or an archived copy of one that is gone."""
        started = time.monotonic()
        try:
            if gone is not None:
                raise gone
            if self._settings.robots if options.robots is None else options.robots:
                await self._robots.check(url, options.headers, deadline_s)
                deadline_s = max(0.0, deadline_s - (time.monotonic() - started))
            return await self._client.fetch(url, deadline_s, options.headers)
        except TargetFailed as error:
            if not (options.recover and is_gone(error)):
                raise
            return await self._archive.recover(url, error, deadline_s - (time.monotonic() - started))

    def _describe(self, fetched: Fetched) -> dict[str, Any]:
        return {
            "url": fetched.url,
            "final_url": fetched.final_url,
            "status": fetched.status,
            "etag": fetched.etag,
            "last_modified": fetched.last_modified,
            "not_modified": fetched.not_modified,
            "media_type": parse_media_type(fetched.content_type) or None,
            **dict.fromkeys(_META_TEXTS),
            "bytes": len(fetched.body),
            "chars": None,
            "pages": None,
            "matches": None,
            "truncated": False,
            "redirects": list(fetched.hops),
            "recovered": fetched.recovered,
            "fetched_at": self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "warnings": list(fetched.warnings),
        }

    async def _read(self, fetched: Fetched, options: FetchOptions, left_s: float) -> Content:
        if options.mode == "raw" and not options.filters:
            # Here and not in a child: it looks at the first bytes, in time linear to them.
            media_type = parse_media_type(fetched.content_type) or sniff(fetched.body, "").media_type
            return Content(fetched.body, _printable(fetched.content_type) or media_type, {"media_type": media_type})
        head = {
            "url": fetched.final_url,
            "content_type": fetched.content_type,
            "mode": options.mode,
            "pages": options.pages,
            "engine": "pdfium",
            "filters": options.filters,
        }
        started = time.monotonic()
        try:
            answer, body = await self._extractor.run(head, fetched.body, self._settings.extract_s, left_s)
        except Crashed as crash:
            # jq aborts where memory runs out, and with it the child; before it, a JSON document is only decoded.
            if crash.signal == OVERTIME or options.jq is not None:
                raise overtime() from crash
            kind = sniff(fetched.body, fetched.content_type, fetched.final_url).kind
            if kind == "office":
                # Its reader, in Rust, aborts where memory runs out, and nowhere else.
                raise TargetFailed(
                    "too_large", "The document needs more memory than it may use.", "Use mode raw to get the bytes."
                ) from crash
            if kind != "pdf":
                raise
            # pdfium aborts where memory runs out; pypdf counts for itself and says what is wrong.
            spent_s, head["engine"] = time.monotonic() - started, "pypdf"
            wall_s = max(1.0, self._settings.extract_s - spent_s)
            answer, body = await self._extractor.run(head, fetched.body, wall_s, left_s - spent_s)
        except TargetFailed as error:
            if options.jq is not None and error.code in ("too_large", "timeout"):
                raise overtime() from error
            raise
        return _open(answer, body)


def _since(started: float) -> int:
    """Whole milliseconds since a monotonic time."""
    return round((time.monotonic() - started) * 1000)


def _open(answer: dict[str, Any], body: bytes) -> Content:
    """A child's answer as Content; nothing in it is taken on trust beyond its types."""
    error, meta, content_type = answer.get("error"), answer.get("meta"), answer.get("content_type")
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(error, dict) and isinstance(code, str) and code in TARGET_CODES:
        about = error.get("meta")
        raise TargetFailed(
            code,
            str(error.get("detail")),
            str(error.get("hint") or ""),
            meta=about if isinstance(about, dict) else {},
        )
    if error is not None or not isinstance(meta, dict) or not isinstance(content_type, str):
        raise TargetFailed("damaged", "The document cannot be read.", "Use mode raw to get the bytes.")
    return Content(body, content_type, meta)


def _printable(content_type: str) -> str:
    """A Content-Type header fit to be sent on: printable ASCII with a valid type, or ""."""
    valid = content_type.isascii() and content_type.isprintable() and len(content_type) < 200
    return content_type.strip() if valid and parse_media_type(content_type) else ""
