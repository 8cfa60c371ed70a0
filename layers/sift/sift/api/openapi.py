"""The OpenAPI document: generated from the routes and models, kept in docs/openapi.json, served at /openapi.json.

`python -m sift.api.openapi` prints it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sift

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

#: What needs no key.
PUBLIC = frozenset({"/healthz", "/openapi.json", "/docs"})

TITLE = "sift"
DESCRIPTION = (
    "Durable batches of URL fetches and of requests to a model gateway. "
    "Errors are application/problem+json with a stable `code` and a `hint`."
)

_REASONS = {
    200: "As asked.",
    202: "Taken in; it runs on its own.",
    204: "Done.",
    303: "Read it at the address in `Location`, which holds for minutes.",
    400: "It can't be read.",
    401: "No valid API key or token.",
    403: "The key or token lacks the scope, or the deployment does not allow it.",
    404: "There is no such thing for this caller.",
    409: "The state does not allow it.",
    413: "The body is too large.",
    422: "It asks for something that does not exist or is not allowed; nothing was stored.",
    429: "A cap of this caller is reached.",
    500: "It failed inside sift.",
    502: "The target failed: its server can't be reached, or answers with an error.",
    503: "A cap of the service is reached, or a part of it does not answer; Retry-After says when to come back.",
    504: "The target took too long.",
}

#: Answers without a body.
_EMPTY = frozenset({204, 303})

Route = TypeVar("Route", bound=Callable[..., Any])


def answers(model: str | None, *statuses: int) -> Callable[[Route], Route]:
    """Note at a route what it can answer, 500 apart: `model` of `sift.api.answers` (None: bytes of any type), and
    problems.

    The document alone reads it: models and schemas are made when somebody asks for that.
    """

    def note(route: Route) -> Route:
        route.__dict__["answers"] = (model, statuses)
        return route

    return note


def _responses(model: str | None, statuses: Sequence[int]) -> dict[int, Any]:
    """What `answers` noted, as the resolver takes it."""
    from sift.api import answers as models

    found: dict[int, Any] = {}
    for status in (*statuses, 500):
        found[status] = {"description": _REASONS[status]}
        if status >= 400:
            found[status]["content"] = {"application/problem+json": {"model": models.Problem}}
        elif status in _EMPTY:
            continue
        elif model is None:
            found[status]["content"] = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
        else:
            found[status]["content"] = {"application/json": {"model": getattr(models, model)}}
    return found


def _describe(app: APIGatewayHttpResolver) -> None:
    """Tell the resolver what the document says beside the routes."""
    from aws_lambda_powertools.event_handler.openapi.models import APIKey, APIKeyIn, HTTPBearer

    app.configure_openapi(
        title=TITLE,
        version=sift.__version__,
        description=DESCRIPTION,
        security_schemes={
            "bearer": HTTPBearer(description="`Authorization: Bearer sift_...`, or a JWT of the operator's provider"),
            "key": APIKey(name="x-api-key", in_=APIKeyIn.header, description="`x-api-key: sift_...`, or such a JWT"),
        },
        security=[{"bearer": []}, {"key": []}],
    )
    for route in [*app._static_routes, *app._dynamic_routes]:
        if noted := route.func.__dict__.get("answers"):
            route.responses = _responses(*noted)


def page() -> str:
    """The document as a page of Swagger UI, which Powertools brings along."""
    from aws_lambda_powertools.event_handler.openapi import swagger_ui

    folder = Path(swagger_ui.__file__).parent
    script, style = (
        (folder / name).read_text(encoding="utf-8") for name in ("swagger-ui-bundle.min.js", "swagger-ui.min.css")
    )
    escaped = text().replace("</", "<\\/")  # it stands in a script
    return swagger_ui.generate_swagger_html(escaped, script, style, "", None)


@functools.cache
def text() -> str:
    """The document as JSON, the same bytes for the same routes.

    What it takes is imported and put together when somebody asks for it: at the start it would be a fifth of what the
    function does before its first answer. It is kept, as anybody may ask for it.
    """
    from sift.api.application import describe

    app = describe()
    _describe(app)
    document = json.loads(app.get_openapi_json_schema())
    document.pop("servers", None)  # it is served wherever it is deployed
    # Powertools adds its own validation errors to every route that names no 422, and a body to every answer that
    # names none; here all errors are problems, and these two answers are empty.
    texts = _texts(app)
    for path in PUBLIC & set(document["paths"]):
        for route in document["paths"][path].values():
            route["security"] = []
    foreign = {"HTTPValidationError", "ValidationError", "ResponseValidationError"}
    for route in (route for path in document["paths"].values() for route in path.values()):
        route["description"] = texts[route["operationId"]]
        route["summary"] = route["description"].partition(". ")[0].rstrip(".")
        responses = route["responses"]
        if "HTTPValidationError" in json.dumps(responses.get("422", {})):
            del responses["422"]
        for status in set(map(str, _EMPTY)) & set(responses):
            del responses[status]["content"]
    schemas = document["components"]["schemas"]
    document["components"]["schemas"] = {name: schema for name, schema in schemas.items() if name not in foreign}
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _texts(app: APIGatewayHttpResolver) -> dict[str, str]:
    """The docstring of each route as one line, by the id of its operation."""
    described = [*app._static_routes, *app._dynamic_routes]
    return {route.operation_id: " ".join((route.func.__doc__ or "").split()) for route in described}


def main() -> None:
    """Print the document."""
    print(text(), end="")


if __name__ == "__main__":
    main()
