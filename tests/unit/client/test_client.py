"""The client: requests, paging, errors and retries."""

from __future__ import annotations

import json

import pytest

from sift_client.client import RESULTS_PATIENCE_S, Sift
from sift_client.errors import SiftApiError, SiftConnectionError
from tests.unit.client.fake_api import FakeApi, Fault

URLS = [f"https://site.example/{number}" for number in range(10)]
PROBLEM = {"code": "unavailable", "detail": "Busy.", "hint": "Wait.", "request_id": "req-9"}


def test_submit_sends_what_was_asked(client: Sift, api: FakeApi) -> None:
    job = client.submit(
        ["https://a.example/", {"url": "https://b.example/", "options": {"pages": "1"}, "id": "b"}],
        options={"mode": "text"},
        window=3,
        metadata={"run": 7},
        fresh=True,
    )
    assert job["counts"]["total"] == 2
    assert api.bodies == [
        {
            "targets": [
                {"url": "https://a.example/"},
                {"url": "https://b.example/", "options": {"pages": "1"}, "id": "b"},
            ],
            "options": {"mode": "text"},
            "window": 3,
            "metadata": {"run": 7},
            "fresh": True,
        }
    ]


def test_targets_come_from_all_pages_in_order(client: Sift, api: FakeApi) -> None:
    client.submit(URLS)
    assert [slot["url"] for slot in client.targets("job_1")] == URLS
    assert sum("/targets" in request for request in api.requests) == 3


def test_one_target_and_its_bytes(client: Sift, api: FakeApi) -> None:
    client.submit(URLS[:1])
    api.finish(0, "Größe")
    assert client.target("job_1", 0)["content"] == "Größe"
    assert client.content("job_1", 0) == "Größe".encode()
    client.target("job_1", 0, offset=0, max_chars=3)
    assert api.requests[-1] == "GET /v1/jobs/job_1/targets/0?offset=0&max_chars=3"


def test_wait_returns_the_end(client: Sift, api: FakeApi) -> None:
    client.submit(URLS[:1])
    looks: list[int] = []

    def finish_at_the_second_look() -> None:
        looks.append(1)
        if len(looks) == 2:
            api.finish(0)

    api.fail_next("wait=", 503, PROBLEM, headers={"retry-after": "1"})
    api.on_look = finish_at_the_second_look
    api.holds = False
    assert client.wait("job_1")["status"] == "done"
    assert len(looks) == 2


def test_cancel(client: Sift, api: FakeApi) -> None:
    client.submit(URLS[:2])
    api.finish(0)
    assert client.cancel("job_1")["counts"] == {
        "total": 2,
        "pending": 0,
        "running": 0,
        "done": 1,
        "failed": 0,
        "cancelled": 1,
    }


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_passing_trouble_is_asked_again(client: Sift, api: FakeApi, sleeps: list[float], status: int) -> None:
    api.fail_next("/v1/jobs$", status, PROBLEM, headers={"retry-after": "3"}, times=2)
    assert client.submit(URLS)["id"] == "job_1"
    assert sleeps == [3.0, 3.0]


def test_without_retry_after_the_pauses_grow(client: Sift, api: FakeApi, sleeps: list[float]) -> None:
    api.fail_next("/v1/jobs$", 502, times=4)
    client.submit(URLS)
    assert len(sleeps) == 4
    assert all(0.25 * 2**n * 0.5 <= pause <= 0.25 * 2**n for n, pause in enumerate(sleeps, start=1))


def test_patience_ends(client: Sift, api: FakeApi, sleeps: list[float]) -> None:
    api.fail_next("/v1/jobs$", 429, PROBLEM | {"code": "caller_busy"}, headers={"retry-after": "20"}, times=9)
    with pytest.raises(SiftApiError) as caught:
        client.submit(URLS)
    assert sleeps == [20.0]
    error = caught.value
    assert (error.code, error.status, error.retry_after) == ("caller_busy", 429, 20.0)
    assert (error.detail, error.hint, error.request_id) == ("Busy.", "Wait.", "req-9")


def test_fresh_is_not_sent_twice_when_it_may_have_been_stored(client: Sift, api: FakeApi) -> None:
    api.fail_next("/v1/jobs$", 503, PROBLEM, headers={"retry-after": "1"}, times=9)
    with pytest.raises(SiftApiError):
        client.submit(URLS, fresh=True)
    assert len(api.requests) == 1


def test_fresh_is_sent_again_after_a_cap(client: Sift, api: FakeApi) -> None:
    api.fail_next("/v1/jobs$", 503, PROBLEM | {"code": "jobs_busy"}, headers={"retry-after": "1"})
    assert client.submit(URLS, fresh=True)["id"] == "job_1"


@pytest.mark.parametrize("status", [400, 401, 404, 409, 413, 422, 500])
def test_what_repeating_cannot_help_is_raised_at_once(client: Sift, api: FakeApi, status: int) -> None:
    api.fail_next("", status, PROBLEM, times=9)
    with pytest.raises(SiftApiError) as caught:
        client.get("job_1")
    assert caught.value.status == status
    assert len(api.requests) == 1


def test_an_error_of_the_gateway_has_a_code_too(client: Sift, api: FakeApi) -> None:
    api.fail_next("", 413, {"message": "Request Too Long"}, headers={"apigw-requestid": "gw-1"})
    with pytest.raises(SiftApiError) as caught:
        client.submit(URLS)
    assert (caught.value.code, caught.value.detail) == ("http_413", "Request Too Long")
    assert caught.value.request_id == "gw-1"


def test_the_key_does_not_follow_a_redirect_to_another_origin(client: Sift, api: FakeApi) -> None:
    bucket = FakeApi()
    try:
        client.submit(URLS[:1])
        bucket.fail_next("/presigned", 200, {})
        api.fail_next("/content", 303, {}, headers={"location": f"{bucket.url}/presigned?signature=1"})
        client.content("job_1", 0)
        assert bucket.requests == ["GET /presigned?signature=1"]
        assert "authorization" not in bucket.headers[0]
    finally:
        bucket.close()


def test_one_target_now(client: Sift, api: FakeApi) -> None:
    fetched = client.fetch(URLS[0], {"mode": "article"})
    assert (fetched["meta"]["status"], client.read(fetched)) == (200, "# Größe\n".encode())
    client.fetch(URLS[0])
    assert api.bodies == [{"url": URLS[0], "options": {"mode": "article"}}, {"url": URLS[0]}]
    assert client.read({"content": "/+8=", "encoding": "base64", "meta": {}}) == b"\xff\xef"


def test_a_large_content_is_read_without_the_key(client: Sift, api: FakeApi) -> None:
    bucket = FakeApi()
    try:
        bucket.fail_next("/answers", 200, {"large": True})
        content = client.read({"content_url": f"{bucket.url}/answers/x?signature=1", "meta": {}})
        assert json.loads(content)["large"]
        assert bucket.requests == ["GET /answers/x?signature=1"]
        assert "authorization" not in bucket.headers[0]
    finally:
        bucket.close()
    client.fetch(URLS[0])
    assert "authorization" in api.headers[-1]


TARGET_PROBLEM = {
    "code": "http_error",
    "detail": "It answered 404.",
    "hint": "Look.",
    "target_status": 404,
    "meta": None,
}


@pytest.mark.parametrize("status", [422, 502, 503, 504])
def test_a_targets_own_error_is_raised_at_once(client: Sift, api: FakeApi, status: int) -> None:
    api.fail_next("/v1/fetch", status, TARGET_PROBLEM, times=9)
    with pytest.raises(SiftApiError) as caught:
        client.fetch(URLS[0])
    assert (caught.value.code, caught.value.of_target, len(api.requests)) == ("http_error", True, 1)


@pytest.mark.parametrize(
    "problem", [{**TARGET_PROBLEM, "code": "busy"}, PROBLEM, None], ids=["busy", "sift", "gateway"]
)
def test_a_fetch_that_may_succeed_later_is_asked_again(
    client: Sift, api: FakeApi, sleeps: list[float], problem: dict[str, object] | None
) -> None:
    api.fail_next("/v1/fetch", 503, problem, headers={"retry-after": "3"})
    assert client.fetch(URLS[0])["meta"] == {"status": 200}
    assert sleeps == [3.0]


def test_nothing_there(sleeps: list[float]) -> None:
    with Sift("http://127.0.0.1:9", "sift_a_b", sleep=sleeps.append) as client, pytest.raises(SiftConnectionError):
        client.get("job_1")
    assert sum(sleeps) <= 5


def test_something_else_there(client: Sift, api: FakeApi) -> None:
    api.fail_next("", 200)
    with pytest.raises(SiftConnectionError, match="without JSON"):
        client.get("job_1")


@pytest.mark.parametrize("job_id", ["../../healthz", "..", "a/b", "a?wait=1", "Ω"])
def test_an_id_stays_one_segment(client: Sift, api: FakeApi, job_id: str) -> None:
    with pytest.raises(SiftApiError, match="no such job"):
        client.get(job_id)
    path = api.requests[0].removeprefix("GET ")
    assert path.startswith("/v1/jobs/")
    assert path.count("/") == 3
    assert "?" not in path


def test_a_results_file_is_waited_for(client: Sift, api: FakeApi, sleeps: list[float]) -> None:
    later = {"retry-after": "3"}
    api.faults.append(Fault("/results", 202, b"{}", later, times=4))
    api.faults.append(Fault("/results", 200, b"\x1f\x8b"))
    assert client.results("job_1") == b"\x1f\x8b"
    assert sleeps == [3.0] * 4


def test_a_results_file_that_does_not_come(client: Sift, api: FakeApi, sleeps: list[float]) -> None:
    api.faults.append(Fault("/results", 202, b"{}", times=10_000))
    with pytest.raises(SiftConnectionError, match="still being written"):
        client.results("job_1")
    assert sum(sleeps) <= RESULTS_PATIENCE_S
