"""What a service refuses: requests that are wrong, callers that may not, and more than its caps allow."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.service import Service

URL = "https://example.com/"
UNKNOWN = "job_01ARZ3NDEKTSV4RRFFQ69G5FAV"

#: Body of a submission, status and code of the answer.
BODIES: list[tuple[Any, int, str]] = [
    ("{", 400, "malformed_json"),
    ("[]", 400, "malformed_json"),
    ({}, 422, "no_targets"),
    ({"targets": []}, 422, "no_targets"),
    ({"targets": [{"url": "ftp://example.com/"}]}, 422, "invalid_target"),
    ({"targets": [{"url": URL, "options": {"mode": "dance"}}]}, 422, "unsupported_option"),
    ({"targets": [{"url": URL, "options": {"context": 1}}]}, 422, "unsupported_option"),
    ({"targets": [{"url": URL}], "windows": 3}, 422, "invalid_request"),
    ({"targets": [{"url": URL}], "window": 33}, 422, "invalid_request"),
    ({"targets": [{"url": URL}] * 9001}, 422, "too_many_targets"),
    ('{"targets": "' + 5_000_000 * "x" + '"}', 413, "request_too_large"),
]  # fmt: skip

#: Every route that needs a key, with something in its place.
GUARDED = [
    "GET /v1/jobs", "POST /v1/jobs", "POST /v1/fetch", "GET /v1/jobs/{id}", "DELETE /v1/jobs/{id}",
    "GET /v1/jobs/{id}/targets", "GET /v1/jobs/{id}/targets/{index}", "GET /v1/jobs/{id}/targets/{index}/content",
    "POST /v1/jobs/{id}/cancel", "POST /v1/jobs/{id}/pause", "POST /v1/jobs/{id}/resume", "POST /v1/jobs/{id}/retry",
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "code"), BODIES, ids=[f"{n}-{case[2]}" for n, case in enumerate(BODIES)])
def test_a_wrong_submission(service: Service, body: Any, status: int, code: str) -> None:
    answer = service.call("POST /v1/jobs", body=body)
    assert (answer.status, answer.code) == (status, code)
    assert answer.json["hint"]


def test_a_wrong_query(service: Service, site: str, visit: str) -> None:
    job_id = service.submit([f"{site}/?{visit}"]).expect(202).json["id"]
    place = {"id": job_id, "index": 0}
    service.wait(job_id)
    answers = [
        service.call("GET /v1/jobs", query={"cursor": "x"}),
        service.call("GET /v1/jobs/{id}", query={"wait": 21}, id=job_id),
        service.call("GET /v1/jobs/{id}/targets", query={"colour": "red"}, id=job_id),
        service.call("GET /v1/jobs/{id}/targets/{index}/content", query={"offset": 10**9}, **place),
        service.call("GET /v1/jobs/{id}/targets/{index}", id=job_id, index=1),
    ]
    assert [(answer.status, answer.code) for answer in answers] == [
        (400, "bad_cursor"), (422, "invalid_request"), (422, "invalid_request"), (422, "invalid_request"),
        (404, "not_found"),
    ]  # fmt: skip


@pytest.mark.parametrize("route", GUARDED)
def test_nobody_gets_in_without_a_key(stranger: Service, route: str) -> None:
    for headers in ({}, {"x-api-key": "sift_0123456789ab_nobody"}):
        answer = stranger.call(route, headers=headers, id=UNKNOWN, index=0)
        assert (answer.status, answer.code) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_job_that_is_not_there(service: Service) -> None:
    for route in GUARDED:
        if "{id}" in route:
            answer = service.call(route, id=UNKNOWN, index=0)
            assert (answer.status, answer.code) == (404, "not_found"), route


def test_another_caller_sees_nothing(service: Service, second: Service, site: str, visit: str) -> None:
    job_id = service.submit([f"{site}/?{visit}"]).expect(202).json["id"]
    service.wait(job_id)
    for route in GUARDED:
        if "{id}" in route:
            assert second.call(route, id=job_id, index=0).code == "not_found", route
    assert job_id not in [job["id"] for job in second.call("GET /v1/jobs").expect(200).json["jobs"]]
    assert service.job(job_id)["status"] == "done"


def test_an_admin_reads_and_changes_nothing(service: Service, admin: Service, site: str, visit: str) -> None:
    job_id = service.submit([f"{site}/?{visit}"]).expect(202).json["id"]
    service.wait(job_id)
    assert admin.job(job_id)["counts"]["done"] == 1
    assert [slot["status"] for slot in admin.slots(job_id, content="true")] == ["done"]
    admin.call("GET /v1/jobs/{id}/targets/{index}/content", id=job_id, index=0).expect(200)
    everybody = admin.call("GET /v1/jobs", query={"all": "true"}).expect(200).json["jobs"]
    assert job_id in [job["id"] for job in everybody]
    bodies = {"POST /v1/jobs": {"targets": [{"url": URL}]}, "POST /v1/fetch": {"url": URL}}
    for route in GUARDED:
        if not route.startswith("GET "):
            answer = admin.call(route, id=job_id, body=bodies.get(route))
            assert (answer.status, answer.code) == (403, "forbidden"), route
    refused = service.call("GET /v1/jobs", query={"all": "true"})
    assert (refused.status, refused.code) == (403, "forbidden")


def test_caps_of_a_caller(second: Service, site: str, visit: str) -> None:
    pages = [f"{site}/slow?{visit}={n}" for n in range(3)]
    many = second.submit(pages)
    assert (many.status, many.code, many.json["limit"]) == (422, "too_many_targets", 2)
    first = second.submit(pages[:2], window=1).expect(202).json["id"]
    busy = second.submit(pages[2:])
    assert (busy.status, busy.code) == (429, "caller_busy")
    assert int(busy.headers["retry-after"]) > 0
    # The same work again is an answer, not a job.
    assert second.submit(pages[:2]).expect(200).json["id"] == first
    second.call("POST /v1/jobs/{id}/cancel", id=first).expect(200)
    assert second.submit(pages[2:]).expect(202).json["status"] in {"queued", "running"}
