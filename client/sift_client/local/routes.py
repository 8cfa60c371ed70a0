"""Which route of the HTTP API a request takes."""

from __future__ import annotations

from sift_client.local.blueprint import RouteSpec
from sift_client.local.errors import TemplateError


class Routes:
    """The routes of an API, tried in API Gateway's order: full match, greedy parameter, `$default`."""

    def __init__(self, routes: list[RouteSpec]) -> None:
        keys = [describe_route(route) for route in routes]
        doubled = {key for key in keys if keys.count(key) > 1}
        if doubled:
            raise TemplateError(f"routes given twice: {sorted(doubled)}")
        self._routes = routes

    def find(self, method: str, path: str) -> tuple[RouteSpec, dict[str, str]] | None:
        """The route for a decoded path, with its path parameters; None when there is none."""
        best: tuple[tuple[int, ...], RouteSpec, dict[str, str]] | None = None
        for route in self._routes:
            if route.method not in (method, "ANY"):
                continue
            match = _match(route.path, path)
            if match is None:
                continue
            # More exact segments win, then an exact method.
            rank = (*match[0], int(route.method == "ANY"))
            if best is None or rank < best[0]:
                best = (rank, route, match[1])
        return None if best is None else (best[1], best[2])


def describe_route(route: RouteSpec) -> str:
    """The route key, such as `GET /jobs/{id}` or `$default`."""
    return route.path if route.path == "$default" else f"{route.method} {route.path}"


def _match(pattern: str, path: str) -> tuple[tuple[int, ...], dict[str, str]] | None:
    """How well a pattern fits (a smaller tuple is better) and its parameters."""
    if pattern == "$default":
        return (9,), {}
    parts, given = pattern.strip("/").split("/"), path[1:].split("/")
    parameters: dict[str, str] = {}
    rank: list[int] = []
    for position, part in enumerate(parts):
        if part.startswith("{") and part.endswith("+}"):
            if not any(given[position:]):
                return None
            parameters[part[1:-2]] = "/".join(given[position:])
            return (*rank, 2), parameters
        if position >= len(given):
            return None
        if part.startswith("{") and part.endswith("}"):
            if not given[position]:
                return None
            parameters[part[1:-1]] = given[position]
            rank.append(1)
        elif part == given[position]:
            rank.append(0)
        else:
            return None
    return (tuple(rank), parameters) if len(given) == len(parts) else None
