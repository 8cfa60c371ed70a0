"""POST /v1/fetch: one target, fetched while its caller waits. No job is made and nothing of it is in the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from sift import logs
from sift.api import openapi, views
from sift.api.models import Fetched, FetchRequest
from sift.bootstrap import FetchNow, run
from sift.identity import FETCH

#: A target's own time, in seconds: an HTTP API ends a request after 30.
TARGET_SECONDS = 25.0
#: What storing a large content and answering may take of the function's time after it, in seconds.
RESERVE_SECONDS = 3.0


def add_route(app: APIGatewayHttpResolver, services: Callable[[], FetchNow]) -> None:
    """Put the route on the resolver. `services` is asked when a request needs them."""

    @app.post(
        "/v1/fetch",
        tags=["fetch"],
        responses=openapi.answers(Fetched, 200, 400, 401, 403, 413, 422, 502, 503, 504),
    )
    def fetch(request: Annotated[FetchRequest, Body()]) -> Response[Any]:
        """One target now. Its own error is the answer's: `code` is the target's, `target_status` the page's."""
        app.context["identity"].require(FETCH)
        logs.add(host=logs.host_of(request.url))
        left_s = app.lambda_context.get_remaining_time_in_millis() / 1000 - RESERVE_SECONDS
        body = run(_answer(services(), request, max(0.0, min(TARGET_SECONDS, left_s))))
        return views.json_response(200, body)


async def _answer(services: FetchNow, request: FetchRequest, deadline_s: float) -> dict[str, Any]:
    content = await services.fetch(request.url, request.options, deadline_s)
    return await views.fetched(content, services.blobs)
