"""The life of a job through the Python client and the command, on a real local stack."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sift_client.cli import main
from sift_client.client import Sift
from sift_client.errors import SiftApiError
from sift_client.local import LocalStack

TEMPLATE = Path(__file__).parents[3] / "template.yaml"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    parameters = {"FetchConcurrency": "2", "FetchBatchSize": "2"}
    with LocalStack(TEMPLATE, site=True, log_dir=tmp_path_factory.mktemp("logs"), parameters=parameters) as running:
        yield running


def _ended(client: Sift, job_id: str) -> str:
    end = time.monotonic() + 240
    while time.monotonic() < end:
        job = client.get(job_id, wait=10)
        if job["status"] in {"done", "partial", "failed", "cancelled"}:
            return job["status"]
    raise AssertionError(f"{job_id} did not end")


def test_pause_resume_cancel_retry_delete(stack: LocalStack, client: Sift, capsys: pytest.CaptureFixture[str]) -> None:
    site = stack.site.url
    slow = [f"{site}/slow?n={n}" for n in range(8)]
    job_id = client.submit([*slow, f"{site}/no-such-page"], window=2)["id"]
    assert main(["pause", job_id]) == 0
    assert "paus" in capsys.readouterr().out
    end = time.monotonic() + 240
    while client.get(job_id, wait=5)["status"] != "paused":
        assert time.monotonic() < end
    held = client.get(job_id)["counts"]
    assert held["running"] == 0
    assert held["pending"] > 0
    with pytest.raises(SiftApiError) as live:
        client.delete(job_id)
    assert live.value.code == "invalid_state"
    assert main(["resume", job_id]) == 0
    with pytest.raises(SiftApiError) as running:
        client.resume(job_id)
    assert running.value.code == "invalid_state"
    assert _ended(client, job_id) == "partial"
    retried = client.retry(job_id)
    assert (retried["retry_of"], retried["counts"]["total"]) == (job_id, 1)
    assert _ended(client, retried["id"]) == "failed"
    capsys.readouterr()
    assert main(["jobs", "--limit", "5"]) == 0
    listed = capsys.readouterr().out
    assert listed.index(retried["id"]) < listed.index(job_id)
    assert [job["id"] for job in client.jobs("partial")] == [job_id]
    assert main(["delete", job_id]) == 0
    assert main(["status", job_id]) == 4
    assert "not_found" in capsys.readouterr().err
    assert job_id not in [job["id"] for job in client.jobs()]


@pytest.mark.parametrize(
    "arguments",
    [["ftp://x"], ["--window", "99", "https://example.com/"], ["--pages", "x" * 300, "https://example.com/"]],
)
def test_what_the_service_refuses_as_wrong_is_wrong_usage(
    client: Sift, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(["run", *arguments]) == 2
    assert "hint: " in capsys.readouterr().err


def test_cancel_keeps_what_is_done_and_retry_runs_the_rest(stack: LocalStack, client: Sift) -> None:
    site = stack.site.url
    job_id = client.submit([f"{site}/slow?cancel={n}" for n in range(6)], window=1)["id"]
    while client.get(job_id, wait=5)["counts"]["done"] < 1:
        pass
    assert client.cancel(job_id)["status"] == "cancelled"
    assert client.cancel(job_id)["status"] == "cancelled"
    time.sleep(3)  # a fetch that was under way may still end, and counts
    counts = client.get(job_id)["counts"]
    assert counts["done"] + counts["cancelled"] == 6
    assert counts["cancelled"] >= 3
    statuses = [slot["status"] for slot in client.targets(job_id)]
    assert [statuses.count(word) for word in ("done", "cancelled")] == [counts["done"], counts["cancelled"]]
    retried = client.retry(job_id)
    assert retried["counts"]["total"] == counts["cancelled"]
    assert client.retry(job_id)["id"] == retried["id"]


def test_an_idempotency_key_stands_for_its_work(stack: LocalStack, client: Sift) -> None:
    site = stack.site.url
    first = client.submit([f"{site}/"], idempotency_key="mine")
    again = client.submit([f"{site}/"], idempotency_key="mine")
    assert (again["id"], again["reused"]) == (first["id"], True)
    with pytest.raises(SiftApiError) as other:
        client.submit([f"{site}/about.html"], idempotency_key="mine")
    assert (other.value.status, other.value.code) == (409, "idempotency_mismatch")
    plain = client.submit([f"{site}/"])
    assert plain["id"] != first["id"]


def test_a_results_file(stack: LocalStack, client: Sift, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job_id = client.submit([f"{stack.site.url}/", f"{stack.site.url}/no-such-page"])["id"]
    assert _ended(client, job_id) == "partial"
    path = tmp_path / "results.jsonl.gz"
    assert main(["results", job_id, "--file", str(path)]) == 0
    assert f"zcat {path}" in capsys.readouterr().err
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert lines == list(client.targets(job_id, content=True))
    assert main(["results", job_id, "--file", str(tmp_path)]) == 4, "a folder is no file"
