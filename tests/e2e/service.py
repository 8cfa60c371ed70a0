"""A service as its callers meet it: plain HTTP, one key, and a list of the jobs that must go again."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import quote, urljoin

import httpx2

ENDS = frozenset({"done", "partial", "failed", "cancelled"})
#: Cold functions, a busy machine and the pauses of a busy site together stay far below it.
PATIENCE_S = 240.0

Json = dict[str, Any]


class Answer:
    """Status, headers and body of one answer; `json` is its body read as an object."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.raw = response.content

    @property
    def text(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> Json:
        found = json.loads(self.raw)
        assert isinstance(found, dict)
        return found

    @property
    def code(self) -> str:
        """The code of a problem, which says so in its content type."""
        assert self.headers["content-type"].startswith("application/problem+json"), (self.status, self.raw[:500])
        assert self.json["status"] == self.status
        return str(self.json["code"])

    def expect(self, status: int) -> Self:
        """This answer, when it has that status."""
        assert self.status == status, f"{self.status} in place of {status}: {self.raw[:2000]!r}"
        return self


class Service:
    """Calls routes by their name in the template: `call("GET /v1/jobs/{id}", id=job_id)`."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url = url.rstrip("/")
        self._key = key
        self.made: list[str] = []
        self._http = httpx2.Client(timeout=60.0, trust_env=False)

    def call(
        self,
        route: str,
        *,
        query: Json | None = None,
        body: Any = None,
        headers: dict[str, str] | None = None,
        **path: Any,
    ) -> Answer:
        """The answer to one request; a body that is no text or bytes goes as JSON. Redirects are not followed."""
        method, _, pattern = route.partition(" ")
        address = self._url + re.sub(r"{(\w+)}", lambda part: quote(str(path[part[1]]), safe=""), pattern)
        sent = body if body is None or isinstance(body, str | bytes) else json.dumps(body)
        given = {"authorization": f"Bearer {self._key}"} if self._key else {}
        return Answer(
            self._http.request(method, address, params=query, content=sent, headers={**given, **(headers or {})})
        )

    def follow(self, address: str) -> Answer:
        """What is at an address that an answer named, read without the key."""
        return Answer(self._http.get(urljoin(self._url + "/", address), follow_redirects=True))

    def submit(self, targets: list[Any], *, headers: dict[str, str] | None = None, **fields: Any) -> Answer:
        """Submit URLs or targets; the job is remembered and goes at the end of the test."""
        listed = [{"url": target} if isinstance(target, str) else target for target in targets]
        answer = self.call("POST /v1/jobs", body={"targets": listed, **fields}, headers=headers)
        self._remember(answer)
        return answer

    def ask(self, requests: list[Json], **fields: Any) -> Answer:
        """Submit requests to the model gateway; the job is remembered as well."""
        answer = self.call("POST /v1/jobs", body={"requests": requests, **fields})
        self._remember(answer)
        return answer

    def retry(self, job_id: str) -> Answer:
        """Retry a job; the new one is remembered as well."""
        answer = self.call("POST /v1/jobs/{id}/retry", id=job_id)
        self._remember(answer)
        return answer

    def job(self, job_id: str, wait: int = 0) -> Json:
        """The job as it is, or after up to `wait` seconds in which it does not change."""
        return self.call("GET /v1/jobs/{id}", id=job_id, query={"wait": wait} if wait else None).expect(200).json

    def wait(self, job_id: str, *statuses: str) -> Json:
        """The job once its status is one of these, or without any an end."""
        wanted = frozenset(statuses) or ENDS
        deadline = time.monotonic() + PATIENCE_S
        while True:
            job = self.job(job_id, wait=10)
            if job["status"] in wanted:
                return job
            assert time.monotonic() < deadline, f"not {sorted(wanted)} in time: {job}"
            # Every call of a service that does not hold its answers would come at once.
            time.sleep(0.2)

    def run(self, targets: list[Any], **fields: Any) -> list[Json]:
        """Submit, wait for the end, and give every slot with its content."""
        job_id = self.submit(targets, **fields).expect(202).json["id"]
        self.wait(job_id)
        return list(self.slots(job_id, content="true"))

    def slots(self, job_id: str, **query: Any) -> Iterator[Json]:
        """The slots of a job, page after page."""
        cursor: Json = {}
        while True:
            page = self.call("GET /v1/jobs/{id}/targets", id=job_id, query={**query, **cursor}).expect(200).json
            yield from page["targets"]
            if page["next"] is None:
                return
            cursor = {"cursor": page["next"]}

    def tidy(self) -> None:
        """Cancel and delete every job that was made here, and see that it is gone."""
        while self.made:
            job_id = self.made[-1]
            found = self.call("GET /v1/jobs/{id}", id=job_id)
            if found.status == 200:
                if found.json["status"] not in ENDS:
                    self.call("POST /v1/jobs/{id}/cancel", id=job_id)
                    self.wait(job_id)
                self.call("DELETE /v1/jobs/{id}", id=job_id).expect(204)
                found = self.call("GET /v1/jobs/{id}", id=job_id)
            assert (found.status, found.code) == (404, "not_found")
            self.made.pop()

    def close(self) -> None:
        self._http.close()

    def _remember(self, answer: Answer) -> None:
        if answer.status in (200, 202) and answer.json["id"] not in self.made:
            self.made.append(answer.json["id"])


def content_of(slot: Json) -> bytes:
    """The content in a slot, whether it came as text or as base64."""
    assert slot["status"] == "done", slot
    content = slot["content"]
    return base64.b64decode(content) if slot.get("encoding") == "base64" else content.encode()
