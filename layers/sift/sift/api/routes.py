"""The routes: read the request, make one call, answer."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import Field

import sift
from sift import excerpts
from sift.api import cursors, openapi, views
from sift.api.models import JobRequest
from sift.api.queries import PLAIN_FLAG, PLAIN_NUMBER
from sift.api.views import json_response
from sift.bootstrap.callers import Api
from sift.clock import SystemClock
from sift.environment import run
from sift.errors import Invalid
from sift.identity import ADMIN, FETCH, INFERENCE, NAME_CHARS, Identity
from sift.jobs import Kind, Meta, State, Status
from sift.services.read import Whose
from sift.services.slots import INLINE_BYTES, Slot, describe, read_content

if TYPE_CHECKING:
    from sift.services.submit import Submitted

#: Longest hold of a status read, in seconds: an HTTP API ends a request after 30.
WAIT_SECONDS = 20
PAGE_SLOTS = 1_000
PAGE_JOBS = 100
#: When to ask again for a results file that is being written, in seconds.
RESULTS_SECONDS = 3


#: The scopes of which a route needs one: those that look, and those that make or change a job.
READ = (FETCH, INFERENCE, ADMIN)
CHANGE = (FETCH, INFERENCE)  # whichever is the job's own kind: Reader.job looks at that

JobId = Annotated[str, Path(description="The job's id.")]
Index = Annotated[int, PLAIN_NUMBER, Path(description="The target's place in the job, from 0.")]
Cursor = Annotated[str | None, Query(description="`next` of the page before.")]
Offset = Annotated[
    Annotated[int, Field(ge=0, le=10**9), PLAIN_NUMBER] | None,
    Query(description="Of a text: the first character to answer, from 0."),
]
MaxChars = Annotated[
    Annotated[int, Field(ge=1, le=excerpts.MAX_CHARS), PLAIN_NUMBER] | None,
    Query(description="Of a text: how many characters to answer at most."),
]
Name = Annotated[str, Query(min_length=1, max_length=NAME_CHARS)]
Word = Literal["pending", "running", "done", "failed", "cancelled"]

_clock = SystemClock()


def add_routes(app: APIGatewayHttpResolver, services: Callable[[], Api]) -> None:
    """Put every route on the resolver. `services` is asked when a request needs them; the caller's identity is in
    the resolver's context by then."""
    router = APIGatewayHttpRouter()

    def caller(*scopes: str) -> Identity:
        """Who calls, when one of these scopes is theirs: what every route but the public ones starts with."""
        found: Identity = app.context["identity"]
        found.require(*scopes)
        return found

    @router.get("/healthz", tags=["service"])
    @openapi.answers("Health", 200)
    def health() -> Response[Any]:
        """Whether the API answers. It needs no key."""
        return json_response(200, {"status": "ok", "version": sift.__version__})

    @router.get("/openapi.json", tags=["service"], include_in_schema=False)
    def schema() -> Response[Any]:
        return Response(200, content_type="application/json", body=openapi.text())

    @router.get("/docs", tags=["service"], include_in_schema=False)
    def docs() -> Response[Any]:
        return Response(200, content_type="text/html", body=openapi.page())

    @router.post("/v1/jobs", tags=["jobs"])
    @openapi.answers("Job", 200, 202, 400, 401, 403, 409, 413, 422, 429, 503)
    def submit(request: Annotated[JobRequest, Body()]) -> Response[Any]:
        """Submit a batch of URLs, or of requests to the model gateway. The same work again answers the same job, with
        `reused: true`."""
        from sift.api.submissions import read_submission  # here: the other routes start sooner without

        key = app.current_event.headers.get("idempotency-key") or app.current_event.headers.get("x-idempotency-key")
        who, api = caller(INFERENCE if request.requests else FETCH), services()
        return _submitted(api, run(api.submitter.submit(who, read_submission(request, key, api.check_webhook))))

    @router.get("/v1/jobs", tags=["jobs"])
    @openapi.answers("JobPage", 200, 400, 401, 403, 422, 503)
    def jobs(
        cursor: Cursor = None,
        limit: Annotated[int, Field(ge=1, le=PAGE_JOBS), PLAIN_NUMBER, Query()] = 20,
        status: Annotated[Status | None, Query(description="Only jobs of this status.")] = None,
        kind: Annotated[Kind | None, Query(description="Only jobs of this kind.")] = None,
        tenant: Annotated[Name | None, Query(description="For admins: jobs of this tenant.")] = None,
        actor: Annotated[Name | None, Query(description="For admins: jobs of this actor of the tenant.")] = None,
        everybody: Annotated[bool, PLAIN_FLAG, Query(alias="all", description="For admins: everybody's jobs.")] = False,
    ) -> Response[Any]:
        """Own jobs, newest first; an admin may ask for others'. A page may hold fewer than `limit` and still have a
        next one."""
        who = caller(*READ)
        whose = _whose(who, tenant, actor, everybody)
        salt = who.caller if whose is None else f"{who.caller} {whose.tenant}/{whose.actor}"
        before = None if cursor is None else cursors.decode_job(salt, cursor)
        accept = functools.partial(_is_job, status, kind)
        found, more = run(services().reader.jobs(who, before, limit, accept, whose))
        posts = run(services().reader.deliveries([meta for meta, _ in found]))
        bodies = [views.job(meta, state, _clock.now_ms(), delivery=posts.get(meta.job_id)) for meta, state in found]
        return json_response(200, {"jobs": bodies, "next": more and cursors.encode(salt, more)})

    @router.get("/v1/jobs/<job_id>", tags=["jobs"])
    @openapi.answers("Job", 200, 401, 403, 404, 422, 503)
    def status(
        job_id: JobId,
        wait: Annotated[
            int,
            Field(ge=0, le=WAIT_SECONDS),
            PLAIN_NUMBER,
            Query(description="Hold until it changes, at most so many seconds."),
        ] = 0,
    ) -> Response[Any]:
        """A job's state: counts, times, error; no contents. Cheap enough to poll."""
        return _job(services(), run(services().reader.wait(caller(*READ), job_id, wait)))

    @router.post("/v1/jobs/<job_id>/cancel", tags=["jobs"])
    @openapi.answers("Job", 200, 401, 403, 404, 409, 422, 503)
    def cancel(job_id: JobId) -> Response[Any]:
        """Cancel a job. Doing it again changes nothing; what has finished is kept. An inference job is `cancelling`
        until its requests in flight are aborted."""
        return _job(services(), run(services().controller.cancel(caller(*CHANGE), job_id)))

    @router.post("/v1/jobs/<job_id>/pause", tags=["jobs"])
    @openapi.answers("Job", 200, 401, 403, 404, 409, 422, 503)
    def pause(job_id: JobId) -> Response[Any]:
        """Pause a job: what is being fetched ends, a request in flight is aborted and runs again later, nothing new
        starts. Its deadline runs on."""
        return _job(services(), run(services().controller.pause(caller(*CHANGE), job_id)))

    @router.post("/v1/jobs/<job_id>/resume", tags=["jobs"])
    @openapi.answers("Job", 200, 401, 403, 404, 409, 422, 503)
    def resume(job_id: JobId) -> Response[Any]:
        """Go on with a paused job."""
        return _job(services(), run(services().controller.resume(caller(*CHANGE), job_id)))

    @router.post("/v1/jobs/<job_id>/retry", tags=["jobs"])
    @openapi.answers("Job", 200, 202, 401, 403, 404, 409, 422, 429, 503)
    def retry(job_id: JobId) -> Response[Any]:
        """Run what failed or never ran as a new job, `retry_of` this one, which stays as it ended."""
        return _submitted(services(), run(services().retrier.retry(caller(*CHANGE), job_id)))

    @router.delete("/v1/jobs/<job_id>", tags=["jobs"])
    @openapi.answers(None, 204, 401, 403, 404, 409, 422, 503)
    def delete(job_id: JobId) -> Response[Any]:
        """Forget an ended job: it is gone at once, and what it stored is removed in steps."""
        run(services().controller.delete(caller(*CHANGE), job_id))
        return Response(204, body="")

    @router.get("/v1/jobs/<job_id>/targets", tags=["targets"])
    @openapi.answers("TargetPage", 200, 400, 401, 403, 404, 422, 503)
    def targets(
        job_id: JobId,
        cursor: Cursor = None,
        limit: Annotated[int, Field(ge=1, le=PAGE_SLOTS), PLAIN_NUMBER, Query()] = 100,
        status: Annotated[Word | None, Query(description="Only targets of this status.")] = None,
        content: Annotated[bool, PLAIN_FLAG, Query(description="With the contents.")] = False,
    ) -> Response[Any]:
        """One slot per target in submit order, those that have not run included; pages stay under 5 MB."""
        page = _page(services(), caller(*READ), job_id, cursor, limit, status, content)
        return json_response(200, run(page))

    @router.get("/v1/jobs/<job_id>/targets/<index>", tags=["targets"])
    @openapi.answers("Target", 200, 401, 403, 404, 422, 503)
    def target(job_id: JobId, index: Index, offset: Offset = None, max_chars: MaxChars = None) -> Response[Any]:
        """One target with its content, or with `offset` and `max_chars` of it."""
        api = services()
        slot = run(api.reader.slot(caller(*READ), job_id, index))
        return json_response(200, run(views.with_content(job_id, slot, api.blobs, offset, max_chars)))

    @router.get("/v1/jobs/<job_id>/targets/<index>/content", tags=["targets"])
    @openapi.answers(None, 200, 303, 401, 403, 404, 422, 503)
    def content(job_id: JobId, index: Index, offset: Offset = None, max_chars: MaxChars = None) -> Response[Any]:
        """A target's content as stored, with its own type. Above 4 MB: 303 to a link that holds for minutes.

        With `offset` or `max_chars`, that part of a text: `sift-chars` says how much there is, `sift-next-offset`
        where to go on.
        """
        api = services()
        slot = run(api.reader.slot(caller(*READ), job_id, index))
        whole = offset is None and max_chars is None
        if whole and slot.outcome is not None and slot.outcome.blob and slot.outcome.size > INLINE_BYTES:
            link = run(api.blobs.link(slot.outcome.blob, views.LINK_SECONDS))
            return Response(303, headers={"Location": link}, body="")
        data = run(read_content(slot, api.blobs))
        media_type = describe(slot)["media_type"] or "application/octet-stream"
        # Content of the web or of a model, served from the API's own origin: it must not run there.
        headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
        if not whole:
            part = excerpts.cut(data, media_type, offset, max_chars)
            data = part.text.encode()
            headers["sift-chars"] = str(part.chars)
            if part.next_offset is not None:
                headers["sift-next-offset"] = str(part.next_offset)
        # Encoded here: the validation of answers would read bytes as UTF-8.
        answer = Response(200, content_type=media_type, body=base64.b64encode(data).decode(), headers=headers)
        answer.base64_encoded = True
        return answer

    @router.get("/v1/jobs/<job_id>/results", tags=["jobs"])
    @openapi.answers("Job", 202, 303, 401, 403, 404, 409, 422, 503)
    def results(job_id: JobId) -> Response[Any]:
        """All outcomes of an ended job as one gzip JSON Lines file: 303 to a link that holds for minutes, or 202 with
        the job while the file is being written."""
        api = services()
        found = run(api.results.find(caller(*READ), job_id))
        if found.key is None:
            body = views.job(found.meta, found.state, _clock.now_ms())
            return json_response(202, body, {"Retry-After": str(RESULTS_SECONDS)})
        link = run(api.blobs.link(found.key, views.LINK_SECONDS))
        return Response(303, headers={"Location": link}, body="")

    app.include_router(router)


def _job(api: Api, found: tuple[Meta, State]) -> Response[Any]:
    meta, state = found
    delivery = run(api.reader.deliveries([meta])).get(meta.job_id)
    return json_response(200, views.job(meta, state, _clock.now_ms(), delivery=delivery))


def _submitted(api: Api, submitted: Submitted) -> Response[Any]:
    meta, reused = submitted.meta, submitted.reused
    delivery = run(api.reader.deliveries([meta])).get(meta.job_id) if reused else None
    body = views.job(meta, submitted.state, _clock.now_ms(), delivery=delivery, reused=reused)
    location = f"/v1/jobs/{meta.job_id}"
    return json_response(200 if submitted.reused else 202, body, {"Location": location})


async def _page(
    api: Api, identity: Identity, job_id: str, cursor: str | None, limit: int, status: str | None, content: bool
) -> dict[str, Any]:
    """A page of slots that stays under the size that one answer may have."""
    meta, _ = await api.reader.look(identity, job_id)
    first = 0 if cursor is None else cursors.decode_index(meta.salt, cursor, meta.total)
    page = await api.reader.page(
        identity, job_id, first, limit, functools.partial(_has_status, status), content=content
    )
    bodies: list[dict[str, Any]] = []
    weight = 0
    go_on = page.next_index
    for slot in page.slots:
        body = await views.with_content(job_id, slot, api.blobs) if content else describe(slot)
        weight += views.weight(body)
        if bodies and weight > views.PAGE_BYTES:
            go_on = slot.index
            break
        bodies.append(body)
    return {"targets": bodies, "next": None if go_on is None else cursors.encode(meta.salt, str(go_on))}


def _whose(who: Identity, tenant: str | None, actor: str | None, everybody: bool) -> Whose | None:
    """Whose jobs a list is asked for; None: one's own. An actor without a tenant is of one's own."""
    if everybody and (tenant or actor):
        raise Invalid("invalid_request", "all: not together with tenant or actor", "Send one or the other.")
    if everybody:
        return Whose()
    if tenant or actor:
        return Whose(tenant or who.tenant, actor)
    return None


def _is_job(status: str | None, kind: str | None, meta: Meta, state: State) -> bool:
    return status in {None, state.status} and kind in {None, meta.kind}


def _has_status(status: str | None, slot: Slot) -> bool:
    return status is None or slot.status == status
