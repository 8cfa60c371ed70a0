"""Run a target that is a URL: fetch it, and keep what the pipeline made of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from sift.blobs.ports import Blobs
from sift.clock import Clock
from sift.errors import TargetBusy, TargetFailed, Unavailable
from sift.messages import TargetMessage
from sift.services.outcomes import keep
from sift.services.pace import Pacer
from sift.services.runner import Claimed, check_budget, crashed
from sift.store.ports import Outcome
from sift.targets import Content

#: One target's own time, in seconds: well inside the function's timeout.
TARGET_SECONDS = 40.0

_log = logging.getLogger(__name__)


class Fetch(Protocol):
    """Fetches one URL within `deadline_s` seconds. Raises TargetFailed or TargetBusy.

    `gone` is why the page is given up: only an archived copy is looked for then, and without one `gone` is raised.
    """

    def __call__(
        self, url: str, options: Mapping[str, Any], deadline_s: float, *, gone: TargetFailed | None = None
    ) -> Awaitable[Content]: ...


class FetchRunner:
    """The runner of fetch jobs."""

    seconds = TARGET_SECONDS
    isolates = True  # documents are parsed on its behalf

    def __init__(self, fetch: Fetch, blobs: Blobs, clock: Clock, pacer: Pacer | None = None) -> None:
        self._fetch = fetch
        self._blobs = blobs
        self._clock = clock
        self._pacer = pacer

    async def run(self, claimed: Claimed, seconds: float, *, gone: TargetFailed | None = None) -> Outcome:
        """As `runner.Runner`: what is given up may have an archived copy, where the target asks for it."""
        message = claimed.message
        if not isinstance(message, TargetMessage):
            raise AssertionError("a request came to the worker of fetch jobs")
        if gone is not None and not message.options.get("recover"):
            raise gone
        try:
            if self._pacer is None or message.slot is None or gone is not None:  # of what is gone, no host is asked
                content = await self._fetch(message.url, message.options, seconds, gone=gone)
            else:
                async with self._pacer.in_turn(message.url, message.slot, message.pace):
                    content = await self._fetch(message.url, message.options, seconds)
        except (TargetBusy, TargetFailed, Unavailable):
            raise
        except Exception as error:
            # A fault of ours must not cost the target its outcome, nor its batch-mates theirs.
            _log.exception("the pipeline failed on a target")
            raise crashed() from error
        check_budget(claimed.state, len(content.body))
        return await keep(self._blobs, message, claimed.lease, content, claimed.attempts, self._clock.now_ms())
