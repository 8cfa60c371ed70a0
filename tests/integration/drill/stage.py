"""A local stack of the real template with some of its numbers changed, and callers of its API."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sift.clock import SystemClock
from sift.services.keys import KeyService
from sift.store.dynamo import DynamoStore
from sift_client.local import LocalStack
from tests.integration.drill.pages import Pages, serve_pages
from tests.integration.local.project import Reply, request

ROOT = Path(__file__).parents[3]
ENDED = {"done", "partial", "failed", "cancelled"}
#: The gateway gave up on the function, Lambda had no place for it, or a port did not answer.
PASSING = {500, 502, 503}


def write_template(folder: Path, edits: Mapping[str, str]) -> Path:
    """A copy of the template in a folder that looks like the repository; each edit must hit exactly one place."""
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    for old, new in edits.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "layers").symlink_to(ROOT / "layers")
    shutil.copytree(ROOT / "functions", folder / "functions")
    path = folder / "template.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@dataclass(frozen=True)
class Caller:
    """One caller of the API; passing faults are tried again, as any client does."""

    url: str
    key: str

    def ask(self, method: str, path: str, body: Any = None) -> Reply:
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        end = time.monotonic() + 240
        while True:
            reply = request(f"{self.url}{path}", method, data, headers)
            refused_for_good = reply.status not in PASSING or reply.json().get("code") == "jobs_busy"
            if refused_for_good or time.monotonic() > end:
                return reply
            time.sleep(0.2)

    def submit(self, urls: list[str], **more: Any) -> Reply:
        options = {"mode": "raw"}  # what is made of a page is not what these tests are about
        return self.ask("POST", "/v1/jobs", {"targets": [{"url": url} for url in urls], "options": options, **more})

    def job(self, job_id: str, wait: int = 0) -> dict[str, Any]:
        reply = self.ask("GET", f"/v1/jobs/{job_id}?wait={wait}")
        assert reply.status == 200, reply.body
        found: dict[str, Any] = reply.json()
        return found

    def end(self, job_id: str, seconds: float = 400) -> dict[str, Any]:
        """The job once it has ended."""
        limit = time.monotonic() + seconds
        while (job := self.job(job_id, wait=5))["status"] not in ENDED:
            assert time.monotonic() < limit, job
        return job

    def slots(self, job_id: str) -> list[dict[str, Any]]:
        """All targets of a job."""
        slots: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = self.ask("GET", f"/v1/jobs/{job_id}/targets?limit=100{cursor}").json()
            slots += page["targets"]
            if page["next"] is None:
                return slots
            cursor = f"&cursor={page['next']}"


@dataclass(frozen=True)
class Stage:
    """The stack, its table as sift sees it, and the site that it may fetch from."""

    stack: LocalStack
    store: DynamoStore
    pages: Pages

    def caller(self, actor: str, **limits: int) -> Caller:
        """A caller with a key of its own."""
        keys = KeyService(self.store, SystemClock())
        return Caller(self.stack.url, asyncio.run(keys.create(tenant="acme", actor=actor, limits=limits)))

    def look(self, read: Callable[[DynamoStore], Any]) -> Any:
        """One look into the table."""
        return asyncio.run(read(self.store))


@contextmanager
def open_stage(
    folder: Path, edits: Mapping[str, str], parameters: Mapping[str, str], quiet_ms: int | None = None, **settings: Any
) -> Iterator[Stage]:
    """A stage, closed at the end. `quiet_ms`: after which the sweeper takes a message that nobody got for lost; it
    is not a setting, so the function sets it."""
    with serve_pages() as pages:
        template = write_template(folder, edits)
        if quiet_ms is not None:
            app = folder / "functions" / "sweep" / "app.py"
            hurry = f"\nfrom sift.services import sweep\n\nsweep.QUIET_MS = {quiet_ms}\n"
            app.write_text(app.read_text(encoding="utf-8") + hurry, encoding="utf-8")
        values = {"GuardAllow": pages.address, "FetchConcurrency": "2", **parameters}
        with LocalStack(template, log_dir=folder / "logs", parameters=values, **settings) as stack:
            store = DynamoStore(stack.client("dynamodb"), stack.physical("JobsTable"))
            yield Stage(stack, store, pages)
            pages.let_go()
