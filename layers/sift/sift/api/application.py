"""The API as one callable: who is calling, then the routes, and every error as a problem document."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError

from sift import logs, metrics
from sift.api import openapi, problems, queries
from sift.bootstrap.callers import Api, FetchNow
from sift.environment import run
from sift.errors import NotFound, SiftError, TargetBusy, TargetFailed, TooLarge, Unauthenticated, Unavailable
from sift.ids import is_job_id
from sift.nesting import is_deep
from sift.services.credentials import CREDENTIAL_CHARS, Authenticator

#: A request body may have this many bytes: Lambda takes events of 6 MB, in which it is a JSON string.
BODY_BYTES = 5_000_000

_log = logging.getLogger(__name__)


class Services(Protocol):
    """What every function behind the API has."""

    @property
    def authenticator(self) -> Authenticator: ...


@dataclass(frozen=True)
class Application:
    """The resolver with its routes."""

    resolver: APIGatewayHttpResolver
    services: Callable[[], Services]

    def handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answer an HTTP API event (payload format 2.0); nothing escapes it but a problem document."""
        with logs.about(request_id=_request_id(event), job_id=_job_id(event)):
            answer = self._handle(event, context)
            status = answer["statusCode"]
            code = _code(answer) if status >= 400 else None
            # The route is the template's, not the path that was asked for.
            _log.info("answered", extra={"route": event.get("routeKey"), "status": status, "code": code})
        return answer

    def _handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        try:
            if event.get("rawPath") not in openapi.PUBLIC:
                identity = run(self.services().authenticator.authenticate(_credential(event)))
                self.resolver.append_context(identity=replace(identity, client_ip=_client_ip(event)))
            if _body_size(event) > BODY_BYTES:
                raise TooLarge(
                    "request_too_large",
                    f"The body is over {BODY_BYTES} bytes.",
                    "Send the targets in several jobs.",
                )
            if any(char in event.get("rawPath", "") for char in "\r\n"):
                raise _no_route()  # the resolver's patterns let a line end follow the path that they match
            return self.resolver.resolve(_as_json(event), context)
        except Exception as error:  # noqa: BLE001 - the one place where whatever was not foreseen becomes a problem document
            request_id = _request_id(event)
            answer = _answer(error, request_id)
            return {
                "statusCode": answer.status_code,
                "headers": {**answer.headers, "Content-Type": problems.MEDIA_TYPE},
                "body": answer.body,
                "isBase64Encoded": False,
            }
        finally:
            self.resolver.clear_context()


def build(services: Callable[[], Api]) -> Application:
    """The API over these services, which are asked for when a request needs them."""
    from sift.api import routes  # here: a function that serves but one route does without the others

    app = _resolver()
    routes.add_routes(app, services)
    return Application(app, services)


def build_fetch_now(services: Callable[[], FetchNow]) -> Application:
    """The one route that fetches while its caller waits; a function of its own serves it."""
    from sift.api import immediate

    app = _resolver()
    immediate.add_route(app, services)
    return Application(app, services)


def describe() -> APIGatewayHttpResolver:
    """All routes, of whichever function, to be described and not to be served."""
    from sift.api import immediate, routes

    app = _resolver()
    routes.add_routes(app, _nothing)
    immediate.add_route(app, _nothing)
    return app


def _resolver() -> APIGatewayHttpResolver:
    """A resolver without routes, whose every error is a problem document."""
    app = APIGatewayHttpResolver(enable_validation=True, json_body_deserializer=_load)
    app.use(middlewares=[queries.refuse_unknown])

    @app.exception_handler(RequestValidationError)
    def invalid(error: RequestValidationError) -> Response[str]:
        return problems.answer(problems.refuse_fields(error.errors()), _request_id(app.current_event.raw_event))

    @app.exception_handler(NotFoundError)
    def not_found(_: NotFoundError) -> Response[str]:
        return problems.answer(_no_route(), _request_id(app.current_event.raw_event))

    @app.exception_handler(Exception)
    def failed(error: Exception) -> Response[str]:
        return _answer(error, _request_id(app.current_event.raw_event))

    return app


def _no_route() -> NotFound:
    return NotFound("not_found", "There is no such route.", "See /docs for the routes.")


def _nothing() -> NoReturn:
    raise _no_route()


def _body_size(event: dict[str, Any]) -> int:
    """The body's size as it was sent, in bytes."""
    body = event.get("body") or ""
    return len(body) * 3 // 4 if event.get("isBase64Encoded") else len(body.encode())


def _answer(error: Exception, request_id: str) -> Response[str]:
    if isinstance(error, SiftError):
        answer = problems.answer(error, request_id)
        if answer.status_code >= 500 and not isinstance(error, TargetFailed | TargetBusy):
            _log.error("a request failed: %s", error.detail, extra={"code": error.code})
        if answer.status_code == 500 and not isinstance(error, TargetFailed | TargetBusy):
            metrics.add(metrics.REQUEST_FAULTS, label="internal")
        elif isinstance(error, Unavailable):
            metrics.add(metrics.REQUEST_FAULTS, label="unavailable")
        return answer
    _log.error("unexpected", exc_info=error)
    metrics.add(metrics.REQUEST_FAULTS, label="internal")
    return problems.internal(request_id)


def _load(body: str) -> dict[str, Any]:
    """A JSON object as the standard has it: no NaN, no nesting without end."""
    try:
        found = json.loads(body, parse_constant=_no_constant)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError):  # nested without end, or a number of thousands of digits
        raise json.JSONDecodeError("not read: too deep, or too long a number", body[:0], 0) from None
    if is_deep(found):
        raise json.JSONDecodeError("not read: too deep", body[:0], 0)
    if not isinstance(found, dict):
        raise json.JSONDecodeError("not an object", body[:0], 0)
    return found


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", "", 0)


def _credential(event: dict[str, Any]) -> str | None:
    """The key or token that a request carries, in either header; None: none that could be one."""
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    key = headers.get("x-api-key", "")
    if bearer and key and bearer != key:
        # Whichever were taken, a client that sends both by mistake would act as somebody it does not mean to be.
        raise Unauthenticated("Authorization and x-api-key hold different credentials.", "Send one of the two headers.")
    found: str = bearer or key
    return found if len(found) <= CREDENTIAL_CHARS else None


def _client_ip(event: dict[str, Any]) -> str | None:
    """The address that the gateway saw, which no header of the caller can change."""
    http = (event.get("requestContext") or {}).get("http") or {}
    return http.get("sourceIp") or None


def _as_json(event: dict[str, Any]) -> dict[str, Any]:
    """Every body is JSON here, whatever a client calls it (curl says `x-www-form-urlencoded`), and UTF-8."""
    if not event.get("body"):
        return event
    body = event["body"]
    if event.get("isBase64Encoded"):
        try:
            body = base64.b64decode(body, validate=True).decode()
        except ValueError:
            raise problems.malformed() from None
    headers = {name: value for name, value in (event.get("headers") or {}).items() if name.lower() != "content-type"}
    return {
        **event,
        "headers": {**headers, "content-type": "application/json"},
        "body": body,
        "isBase64Encoded": False,
    }


def _job_id(event: dict[str, Any]) -> str | None:
    """The job that the path names, where it has the form of one."""
    parts = str(event.get("rawPath")).split("/")
    return parts[3] if len(parts) > 3 and is_job_id(parts[3]) else None


def _request_id(event: dict[str, Any]) -> str:
    context = event.get("requestContext")
    return str(context.get("requestId", "")) if isinstance(context, dict) else ""


def _code(answer: dict[str, Any]) -> str | None:
    """The code of a problem document; None where an answer is none, as one that Powertools made."""
    try:
        found = json.loads(answer["body"])["code"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if isinstance(found, str) else None
