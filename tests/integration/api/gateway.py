"""The functions behind the API as a WSGI application in this process, with events as API Gateway makes them."""

from __future__ import annotations

from collections.abc import Iterable
from http.client import responses
from typing import Any

from sift_client.local.payload import Request, make_event, read_answer
from sift_client.local.routes import Routes, describe_route
from tests.integration.api.stage import Stage, context

#: The function of each route, by its folder.
FUNCTIONS = {"ApiFunction": "api", "FetchNowFunction": "fetch_now"}


class Gateway:
    """Answers like the gateway of template.yaml: 404 without a problem where it has no route."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._routes = Routes(stage.deployment.blueprint.routes)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path, query = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace"), environ["QUERY_STRING"]
        names = {name: name[5:] for name in environ if name.startswith("HTTP_")} | {"CONTENT_TYPE": "CONTENT_TYPE"}
        headers = [(name.replace("_", "-"), environ[key]) for key, name in names.items() if environ.get(key)]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        request = Request(environ["REQUEST_METHOD"], path, query, headers, body, "HTTP/1.1", "192.0.2.1")
        found = self._routes.find(request.method, request.path)
        if found is None:
            start_response("404 Not Found", [("content-type", "application/json")])
            return [b'{"message": "Not Found"}']
        route, parameters = found
        event = make_event(request, describe_route(route), parameters, "api", "123456789012")
        answer = read_answer(
            self._stage.deployment.functions[FUNCTIONS[route.function]].lambda_handler(event, context())
        )
        start_response(f"{answer.status} {responses[answer.status]}", answer.headers)
        return [answer.body]
