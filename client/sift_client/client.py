"""A small synchronous client of the HTTP API."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx2

from sift_client.connection import LOCAL_FILE, find_connection
from sift_client.errors import SiftApiError, SiftConnectionError
from sift_client.shapes import ENDED_JOB, Fetched, Job, JobStatus, Slot, Target

#: The service holds a request with `wait` for at most this long: its HTTP API ends every request at 30 s.
LONGEST_WAIT_S = 20

#: A service that has not answered once is rather not there than restarting, and somebody may be waiting.
FIRST_PATIENCE_S = 5.0

#: The file of a job that was cancelled waits for the leases of what was under way, which last under two minutes.
RESULTS_PATIENCE_S = 180.0

_REPEATABLE = frozenset({429, 502, 503, 504})


class Sift:
    """One service and one key. Use it as a context manager, or call `close()`.

    `url` and `key` default to SIFT_URL and SIFT_KEY, then to `.sift/local.json` in the current folder, which
    a running local stack writes. `patience_s` is the most seconds that one call spends waiting between tries.
    Every method raises `SiftApiError` or `SiftConnectionError`.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience_s: float = 30.0,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        local_file: Path = LOCAL_FILE,
    ) -> None:
        connection = find_connection(url, key, local_file=local_file)
        self.url = connection.url
        self._patience_s = patience_s
        self._sleep = sleep
        self._answered = False
        self._http = httpx2.Client(
            base_url=connection.url,
            headers={"authorization": f"Bearer {connection.key}", "accept": "application/json"},
            # Reading may take the server's longest hold and a cold start on top.
            timeout=httpx2.Timeout(10.0, read=LONGEST_WAIT_S + 25.0),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def submit(
        self,
        targets: Sequence[str | Target],
        *,
        options: Mapping[str, Any] | None = None,
        window: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        fresh: bool = False,
        idempotency_key: str | None = None,
    ) -> Job:
        """Submit one job. The same work again answers the same job with `reused: true`, unless `fresh`.

        With an `idempotency_key` that key stands for the work, and other work under it is refused. A lost answer is
        asked for again, except with `fresh`, where that could make a second job.
        """
        body: dict[str, Any] = {"targets": [{"url": t} if isinstance(t, str) else dict(t) for t in targets]}
        if options:
            body["options"] = dict(options)
        if window is not None:
            body["window"] = window
        if metadata:
            body["metadata"] = dict(metadata)
        if fresh:
            body["fresh"] = True
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return cast(Job, self._json("POST", "/v1/jobs", body=body, headers=headers, repeatable=not fresh))

    def fetch(self, url: str, options: Mapping[str, Any] | None = None) -> Fetched:
        """One target now, without a job; the service takes 25 seconds at most. `read` gives its content as bytes.

        Raises `SiftApiError` with the target's own code, `of_target` set, when it has no content.
        """
        body = {"url": url, "options": dict(options)} if options else {"url": url}
        return cast(Fetched, self._json("POST", "/v1/fetch", body=body))

    def read(self, fetched: Fetched) -> bytes:
        """The content of what `fetch` answered, wherever it is."""
        if "content_url" in fetched:
            return self._call("GET", fetched["content_url"], with_key=False).content
        content = fetched["content"]
        return base64.b64decode(content) if fetched.get("encoding") == "base64" else content.encode()

    def get(self, job_id: str, *, wait: int = 0) -> Job:
        """The job's status; with `wait` (seconds, at most 20) not before it changes or they have passed."""
        params = {"wait": str(min(wait, LONGEST_WAIT_S))} if wait > 0 else None
        return cast(Job, self._json("GET", f"/v1/jobs/{_segment(job_id)}", params=params))

    def wait(self, job_id: str) -> Job:
        """The job once it has ended. This takes as long as the job does, at most its deadline."""
        while True:
            started = time.monotonic()
            job = self.get(job_id, wait=LONGEST_WAIT_S)
            if job["status"] in ENDED_JOB:
                return job
            # A service that answers at once (a paused job, say) must not be asked in a tight loop.
            self._sleep(max(0.0, 0.5 - (time.monotonic() - started)))

    def targets(
        self, job_id: str, *, status: str | None = None, content: bool = False, limit: int | None = None
    ) -> Iterator[Slot]:
        """All slots of the job in submit order, however many pages they come in."""
        cursor: str | None = None
        while True:
            slots, cursor = self.targets_page(job_id, cursor=cursor, status=status, content=content, limit=limit)
            yield from slots
            if cursor is None:
                return

    def targets_page(
        self,
        job_id: str,
        *,
        cursor: str | None = None,
        status: str | None = None,
        content: bool = False,
        limit: int | None = None,
    ) -> tuple[list[Slot], str | None]:
        """One page of slots and the cursor of the next, or None after the last."""
        params = {
            name: value
            for name, value in (
                ("cursor", cursor),
                ("status", status),
                ("content", "true" if content else None),
                ("limit", str(limit) if limit is not None else None),
            )
            if value is not None
        }
        page = self._json("GET", f"/v1/jobs/{_segment(job_id)}/targets", params=params)
        return cast("list[Slot]", page["targets"]), page.get("next")

    def target(self, job_id: str, index: int, *, offset: int | None = None, max_chars: int | None = None) -> Slot:
        """One slot with its content, or with `content_url` where that is over 4 MB.

        With `offset` or `max_chars`: with that part of its text, and `next_offset`, the offset to go on at or None.
        """
        asked = {"offset": offset, "max_chars": max_chars}
        params = {name: str(value) for name, value in asked.items() if value is not None}
        return cast(Slot, self._json("GET", f"/v1/jobs/{_segment(job_id)}/targets/{index}", params=params))

    def content(self, job_id: str, index: int) -> bytes:
        """The stored bytes of one target, of any size."""
        return self._call("GET", f"/v1/jobs/{_segment(job_id)}/targets/{index}/content").content

    def cancel(self, job_id: str) -> Job:
        """Cancel the job; doing so again is no error."""
        return cast(Job, self._json("POST", f"/v1/jobs/{_segment(job_id)}/cancel"))

    def pause(self, job_id: str) -> Job:
        """Pause the job: `paused`, or `pausing` while what is being fetched ends."""
        return cast(Job, self._json("POST", f"/v1/jobs/{_segment(job_id)}/pause"))

    def resume(self, job_id: str) -> Job:
        """Go on with a paused job. Raises `SiftApiError` `invalid_state` when it is not paused."""
        return cast(Job, self._json("POST", f"/v1/jobs/{_segment(job_id)}/resume", repeatable=False))

    def retry(self, job_id: str) -> Job:
        """A new job of what failed or never ran; asking again answers the same new job."""
        return cast(Job, self._json("POST", f"/v1/jobs/{_segment(job_id)}/retry"))

    def delete(self, job_id: str) -> None:
        """Forget an ended job and all that it stored."""
        self._call("DELETE", f"/v1/jobs/{_segment(job_id)}", repeatable=False)

    def jobs(
        self,
        status: JobStatus | None = None,
        *,
        tenant: str | None = None,
        actor: str | None = None,
        everybody: bool = False,
    ) -> Iterator[Job]:
        """Own jobs, newest first; further pages are read as they are needed. For admins also those of a tenant, of
        one of its actors (without `tenant`, of one's own), or everybody's."""
        asked = {"status": status, "tenant": tenant, "actor": actor, "all": "true" if everybody else None}
        params = {"limit": "100", **{name: value for name, value in asked.items() if value is not None}}
        while True:
            page = self._json("GET", "/v1/jobs", params=params)
            yield from page["jobs"]
            if not page["next"]:
                return
            params["cursor"] = page["next"]

    def results(self, job_id: str) -> bytes:
        """All outcomes of an ended job as gzip JSON Lines: the slots as `targets` gives them with content, in submit
        order. It is waited for while the service writes it, up to the patience after which calls give up."""
        waited = 0.0
        while True:
            response = self._call("GET", f"/v1/jobs/{_segment(job_id)}/results")
            if response.status_code != 202:
                return response.content
            pause = _seconds(response.headers.get("retry-after")) or 1.0
            if waited + pause > max(self._patience_s, RESULTS_PATIENCE_S):
                raise SiftConnectionError(
                    f"the results file of {job_id} is still being written", "Ask for it again in a minute."
                )
            self._sleep(pause)
            waited += pause

    def _json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
    ) -> dict[str, Any]:
        response = self._call(method, path, params=params, body=body, headers=headers, repeatable=repeatable)
        try:
            found = response.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise SiftConnectionError(
                f"{self.url}{path} answered {response.status_code} without JSON",
                "Is SIFT_URL the address of sift?",
            )
        return found

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
        with_key: bool = True,
    ) -> httpx2.Response:
        """One answer below 400, after as many tries as the patience allows for what may be repeated."""
        waited = 0.0
        attempt = 0
        while True:
            attempt += 1
            problem: SiftApiError | SiftConnectionError
            try:
                request = self._http.build_request(method, path, params=params, json=body, headers=headers)
                if not with_key:
                    del request.headers["authorization"]
                # A redirect goes to a presigned address of another origin; httpx2 keeps the key to this one.
                response = self._http.send(request, follow_redirects=method == "GET")
            except httpx2.RequestError as error:
                problem = SiftConnectionError(
                    f"{self.url} did not answer ({_reason(error)})",
                    "Is it up, and SIFT_URL right? A local stack is started with `sift local --site`.",
                )
                again = repeatable or isinstance(error, httpx2.ConnectError)
            else:
                self._answered = True
                if response.status_code < 400:
                    return response
                problem = _read_problem(response)
                again = response.status_code in _REPEATABLE and (repeatable or _stored_nothing(problem))
                # What a page is will not change while we wait, unless it says so itself.
                again = again and (not problem.of_target or problem.code == "busy")
            pause = min(8.0, 0.25 * 2**attempt) * random.uniform(0.5, 1.0)  # noqa: S311 jitter, not a secret
            if isinstance(problem, SiftApiError) and problem.retry_after is not None:
                pause = problem.retry_after
            patience = self._patience_s if self._answered else min(self._patience_s, FIRST_PATIENCE_S)
            if not again or waited + pause > patience:
                raise problem
            self._sleep(pause)
            waited += pause


def _segment(job_id: str) -> str:
    # An id typed by hand must stay one path segment, or it would ask another route.
    return quote(job_id, safe="").replace(".", "%2E")


def _stored_nothing(problem: SiftApiError) -> bool:
    # A cap refused it, so that even a submit with `fresh` may be repeated.
    return problem.status == 429 or problem.code == "jobs_busy"


def _reason(error: httpx2.RequestError) -> str:
    return str(error) or type(error).__name__


def _read_problem(response: httpx2.Response) -> SiftApiError:
    try:
        found = response.json()
    except ValueError:
        found = None
    problem: dict[str, Any] = found if isinstance(found, dict) else {}
    # API Gateway's own errors are {"message": ...} and carry no code.
    detail = problem.get("detail") or problem.get("message") or f"HTTP {response.status_code}"
    return SiftApiError(
        str(problem.get("code") or f"http_{response.status_code}"),
        str(detail),
        str(problem.get("hint") or ""),
        status=response.status_code,
        request_id=problem.get("request_id") or response.headers.get("apigw-requestid"),
        retry_after=_seconds(response.headers.get("retry-after")),
        of_target="target_status" in problem,
    )


def _seconds(value: str | None) -> float | None:
    # An HTTP date is not read: sift and API Gateway answer whole seconds.
    return float(value) if value and value.isascii() and value.isdigit() else None
