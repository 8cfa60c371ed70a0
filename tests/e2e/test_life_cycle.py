"""A job from its submission to its end, and what its caller can do to it on the way."""

from __future__ import annotations

import gzip
import json
import time

from tests.e2e.service import ENDS, PATIENCE_S, Service


def _slow(site: str, visit: str, count: int) -> list[str]:
    """Pages that take two seconds each: with a window of one, a job that lasts."""
    return [f"{site}/slow?{visit}={n}" for n in range(count)]


def test_the_same_work_is_done_once(service: Service, site: str, visit: str) -> None:
    work = [f"{site}/?{visit}", f"{site}/about.html?{visit}"]
    first = service.submit(work, metadata={"run": visit}).expect(202)
    job = first.json
    assert first.headers["location"].endswith(f"/v1/jobs/{job['id']}")
    assert (job["kind"], job["metadata"], job["counts"]["total"]) == ("fetch", {"run": visit}, 2)
    again = service.submit(work).expect(200).json
    assert (again["id"], again["reused"]) == (job["id"], True)
    assert service.wait(job["id"])["status"] == "done"
    later = service.submit(work).expect(200).json
    assert (later["id"], later["status"]) == (job["id"], "done")
    fresh = service.submit(work, fresh=True).expect(202).json
    assert fresh["id"] != job["id"]
    assert service.wait(fresh["id"])["status"] == "done"


def test_a_key_names_the_work(service: Service, site: str, visit: str) -> None:
    named = {"idempotency-key": visit}
    job = service.submit([f"{site}/?{visit}"], headers=named).expect(202).json
    again = service.submit([f"{site}/?{visit}"], headers=named).expect(200).json
    assert (again["id"], again["reused"]) == (job["id"], True)
    other = service.submit([f"{site}/about.html?{visit}"], headers=named)
    assert (other.status, other.code, other.json["job_id"]) == (409, "idempotency_mismatch", job["id"])
    assert other.headers["x-should-retry"] == "false"


def test_pause_and_resume(service: Service, site: str, visit: str) -> None:
    job_id = service.submit(_slow(site, visit, 4), window=1).expect(202).json["id"]
    assert service.call("POST /v1/jobs/{id}/pause", id=job_id).expect(200).json["status"] in {"pausing", "paused"}
    held = service.wait(job_id, "paused")
    assert held["counts"]["running"] == 0
    assert held["counts"]["pending"] > 0
    assert service.call("POST /v1/jobs/{id}/pause", id=job_id).expect(200).json["status"] == "paused"
    live = service.call("DELETE /v1/jobs/{id}", id=job_id)
    assert (live.status, live.code) == (409, "invalid_state")
    assert service.retry(job_id).code == "invalid_state"
    assert service.call("POST /v1/jobs/{id}/resume", id=job_id).expect(200).json["status"] in {"queued", "running"}
    ended = service.wait(job_id)
    assert (ended["status"], ended["counts"]["done"]) == ("done", 4)
    over = service.call("POST /v1/jobs/{id}/resume", id=job_id)
    assert (over.status, over.code) == (409, "invalid_state")


def test_cancel_and_retry(service: Service, site: str, visit: str) -> None:
    # Held back first, so that however fast the service is some of it never runs.
    job_id = service.submit(_slow(site, visit, 3), window=1).expect(202).json["id"]
    service.call("POST /v1/jobs/{id}/pause", id=job_id).expect(200)
    service.wait(job_id, "paused")
    assert service.call("POST /v1/jobs/{id}/cancel", id=job_id).expect(200).json["status"] == "cancelled"
    assert service.call("POST /v1/jobs/{id}/cancel", id=job_id).expect(200).json["status"] == "cancelled"
    counts = service.job(job_id)["counts"]
    assert counts["cancelled"] >= 1
    assert counts["done"] + counts["cancelled"] == 3
    assert [slot["status"] for slot in service.slots(job_id)].count("cancelled") == counts["cancelled"]
    retried = service.retry(job_id).expect(202).json
    assert (retried["retry_of"], retried["counts"]["total"]) == (job_id, counts["cancelled"])
    assert service.retry(job_id).expect(200).json["id"] == retried["id"]
    assert service.wait(retried["id"])["status"] == "done"
    nothing = service.retry(retried["id"])
    assert (nothing.status, nothing.code) == (422, "nothing_to_retry")


def test_a_deleted_job_is_gone_and_its_work_is_new(service: Service, site: str, visit: str) -> None:
    work = [f"{site}/?{visit}"]
    job_id = service.submit(work).expect(202).json["id"]
    service.wait(job_id)
    service.call("DELETE /v1/jobs/{id}", id=job_id).expect(204)
    for route in ("GET /v1/jobs/{id}", "GET /v1/jobs/{id}/targets", "DELETE /v1/jobs/{id}"):
        assert service.call(route, id=job_id).code == "not_found"
    anew = service.submit(work).expect(202).json
    assert (anew["id"] != job_id, anew["reused"]) == (True, False)


def test_the_list_has_the_newest_first(service: Service, site: str, visit: str) -> None:
    made = []
    for number in range(3):
        made.append(service.submit([f"{site}/?{visit}={number}"]).expect(202).json["id"])
        service.wait(made[-1])
    listed, cursor = [], {}
    while True:
        page = service.call("GET /v1/jobs", query={"limit": 2, **cursor}).expect(200).json
        listed += page["jobs"]
        if page["next"] is None or len(listed) > 20:
            break
        cursor = {"cursor": page["next"]}
    assert [job["id"] for job in listed if job["id"] in made] == made[::-1]
    assert all(job["status"] in ENDS for job in listed if job["id"] in made)
    done = service.call("GET /v1/jobs", query={"status": "done", "kind": "fetch"}).expect(200).json["jobs"]
    assert set(made) <= {job["id"] for job in done}


def test_all_outcomes_in_one_file(service: Service, site: str, visit: str) -> None:
    results = "GET /v1/jobs/{id}/results"
    job_id = service.submit([f"{site}/slow?{visit}", f"{site}/no-such-page?{visit}"]).expect(202).json["id"]
    early = service.call(results, id=job_id)
    assert (early.status, early.code) == (409, "not_ended")
    service.wait(job_id)
    deadline = time.monotonic() + PATIENCE_S
    while (answer := service.call(results, id=job_id)).status == 202:
        assert int(answer.headers["retry-after"]) > 0
        assert time.monotonic() < deadline, "the file is never written"
        time.sleep(0.2)
    found = service.follow(answer.expect(303).headers["location"]).expect(200)
    # Whether the transport unpacked it on the way is its own affair.
    lines = gzip.decompress(found.raw) if found.raw.startswith(b"\x1f\x8b") else found.raw
    slots = [json.loads(line) for line in lines.splitlines()]
    assert [(slot["index"], slot["status"]) for slot in slots] == [(0, "done"), (1, "failed")]
    assert "content" in slots[0]
    assert slots[1]["error"]["code"] == "http_error"
