"""POST /v1/fetch: one target, fetched while its caller waits. No job is made and nothing of it is in the table."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from sift import logs
from sift.api import openapi, problems, views
from sift.api.models import FetchRequest
from sift.bootstrap.callers import FetchNow
from sift.clashes import find_clash
from sift.environment import run
from sift.errors import SiftError, TargetBusy, TargetFailed
from sift.identity import FETCH
from sift.targets import Content

#: A target's own time, in seconds: an HTTP API ends a request after 30.
TARGET_SECONDS = 25.0
#: What storing a large content and answering may take of the function's time after it, in seconds.
RESERVE_SECONDS = 3.0

_log = logging.getLogger(__name__)


def add_route(app: APIGatewayHttpResolver, services: Callable[[], FetchNow]) -> None:
    """Put the route on the resolver. `services` is asked when a request needs them."""

    @app.post("/v1/fetch", tags=["fetch"])
    @openapi.answers("Fetched", 200, 400, 401, 403, 413, 422, 502, 503, 504)
    def fetch(request: Annotated[FetchRequest, Body()]) -> Response[Any]:
        """One target now. Its own error is the answer's: `code` is the target's, `target_status` the page's."""
        app.context["identity"].require(FETCH)
        logs.add(host=logs.host_of(request.url))
        if clash := find_clash(request.options):
            raise problems.refuse_clash(None, clash)
        left_s = app.lambda_context.get_remaining_time_in_millis() / 1000 - RESERVE_SECONDS
        body = run(_answer(services(), request, max(0.0, min(TARGET_SECONDS, left_s))))
        return views.json_response(200, body)


async def _answer(services: FetchNow, request: FetchRequest, deadline_s: float) -> dict[str, Any]:
    content = await _fetch(services, request, deadline_s)
    return await views.fetched(content, services.blobs)


async def _fetch(services: FetchNow, request: FetchRequest, deadline_s: float) -> Content:
    """The content, of an archived copy if `recover` is set and the server is in trouble: it is not tried again."""
    started = time.monotonic()
    try:
        try:
            return await services.fetch(request.url, request.options, deadline_s)
        except TargetBusy as busy:
            if not request.options.recover or (busy.status or 0) < 500:
                raise
            left_s = max(0.0, deadline_s - (time.monotonic() - started))
            return await _recover(services, request, left_s, busy)
    except SiftError:
        raise
    except Exception as error:
        _log.exception("the pipeline failed on a target")
        raise TargetFailed(
            "crashed",
            "The target could not be worked on: sift failed on it.",
            "Look for the request id in the log of the fetch function.",
        ) from error


async def _recover(services: FetchNow, request: FetchRequest, left_s: float, busy: TargetBusy) -> Content:
    gone = TargetFailed("busy", busy.detail, busy.hint, status=busy.status)
    try:
        return await services.fetch(request.url, request.options, left_s, gone=gone)
    except TargetFailed as error:
        if error is not gone:
            raise
        # There is no copy: the page is busy as before, and when to come back still holds.
        raise TargetBusy(busy.detail, retry_after=busy.retry_after, status=busy.status, meta=gone.meta) from busy
