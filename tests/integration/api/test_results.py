"""The results file through the API: while it is written, when it is there, and for whom."""

from __future__ import annotations

import gzip
import json
import random
import urllib.request
from typing import Any

from sift.targets import Content
from tests.integration.api.stage import NOT_THERE, Stage, context, read_event

URL = "https://example.com/"


def read_lines(link: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(link) as answer:
        assert answer.headers["Content-Type"] == "application/gzip"
        assert "Content-Encoding" not in answer.headers
        return [json.loads(line) for line in gzip.decompress(answer.read()).splitlines()]


def test_a_job_from_its_end_to_its_file(stage: Stage) -> None:
    job_id = stage.submit(URL, f"{URL}404", f"{URL}large")
    refused = stage.get(f"/v1/jobs/{job_id}/results")
    assert (refused.status, refused.code) == (409, "not_ended")
    large = Content(bytes(4_000_001), "text/plain", {"status": 200})
    stage.work({f"{URL}404": NOT_THERE, f"{URL}large": large})
    waits = stage.get(f"/v1/jobs/{job_id}/results")
    assert (waits.status, waits.headers["retry-after"], waits.json["id"]) == (202, "3", job_id)
    assert stage.assemble() == []
    found = stage.get(f"/v1/jobs/{job_id}/results")
    assert (found.status, found.raw) == (303, b"")
    slots = stage.get(f"/v1/jobs/{job_id}/targets", content=True).json["targets"]
    assert read_lines(found.headers["location"]) == slots
    assert [slot["status"] for slot in slots] == ["done", "failed", "done"]
    other = stage.get(f"/v1/jobs/{job_id}/results", key=stage.new_key("bob"))
    assert (other.status, other.code) == (404, "not_found")
    admin = stage.get(f"/v1/jobs/{job_id}/results", key=stage.new_key("bob", scopes=("admin:acme",)))
    assert admin.status == 303


def test_a_file_of_several_parts_on_the_bucket_that_refuses_small_ones(stage: Stage) -> None:
    noise = random.Random(7)
    urls = [f"{URL}{number}" for number in range(12)]
    pictures: dict[str, Content | Exception] = {url: Content(noise.randbytes(1_000_000), "image/png") for url in urls}
    job_id = stage.submit(*urls)
    stage.work(pictures)
    assert stage.assemble(seconds=[120.0, 10.0, 120.0, 10.0]) == [], "each part by an invocation of its own"
    found = read_lines(stage.get(f"/v1/jobs/{job_id}/results").headers["location"])
    assert [slot["index"] for slot in found] == list(range(12))
    assert {slot["encoding"] for slot in found} == {"base64"}
    assert stage.request("DELETE", f"/v1/jobs/{job_id}").status == 204
    assert stage.get(f"/v1/jobs/{job_id}/results").code == "not_found"


def test_the_event_in_the_repository_is_done_with(stage: Stage) -> None:
    answer = stage.deployment.functions["assemble"].lambda_handler(read_event("assemble-job"), context())
    assert answer == {"batchItemFailures": []}
