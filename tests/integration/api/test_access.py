"""Requests that are refused for who sends them: no valid key, or a cap that is reached."""

from __future__ import annotations

import pytest

from tests.integration.api.stage import Stage
from tests.integration.api.stage import submit_refused as submit

URL = "https://example.com/"
GOOD = {"targets": [{"url": URL}]}


# who


def wrong_credentials(stage: Stage) -> list[dict[str, str]]:
    key = stage.key
    shapes = [
        "",
        "Bearer",
        "Bearer ",
        f"bearer{key}",
        f"Basic {key}",
        key,
        "Bearer null",
        "Bearer sift_",
        f"Bearer {key[:-1]}",
        f"Bearer {key}0",
        f"Bearer {key} {key}",
        f"Bearer {key},{key}",
        f"Token {key}",
        f"Bearer Bearer {key}",
        "Bearer " + "x" * 10_000,
        f"Bearer {key[:18]}{'0' * 64}",
        "Bearer \x00",
        "Bearer ключ",
        f"Bearer {key.upper()}",
    ]
    return [{}, *({"authorization": shape} for shape in shapes), {"x-api-key": ""}, {"x-api-key": f"Bearer {key}"}]


def test_whoever_is_not_known_learns_nothing(stage: Stage) -> None:
    job_id = stage.submit(URL)
    before = stage.stored()
    bodies = set()
    for headers in wrong_credentials(stage):
        for method, path, body in (
            ("POST", "/v1/jobs", "{"), ("GET", f"/v1/jobs/{job_id}", None), ("GET", "/v1/jobs/nonsense", None),
            ("POST", f"/v1/jobs/{job_id}/cancel", None), ("GET", "/v1/nothing", None),
        ):  # fmt: skip
            reply = stage.request(method, path, body, key=None, headers=headers)
            assert (reply.status, reply.code) == (401, "unauthenticated"), (headers, path)
            assert reply.headers["www-authenticate"] == "Bearer"
            bodies.add(reply.raw)
    assert len(bodies) == 1
    assert stage.stored() == before


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER  {}"])
def test_a_bearer_key_is_taken(stage: Stage, form: str) -> None:
    for name in ("authorization", "Authorization"):
        headers = {name: form.format(stage.key)}
        assert stage.request("GET", "/v1/jobs/x", key=None, headers=headers).status == 404


@pytest.mark.parametrize("name", ["x-api-key", "X-Api-Key"])
def test_an_api_key_header_is_taken(stage: Stage, name: str) -> None:
    assert stage.request("GET", "/v1/jobs/x", key=None, headers={name: stage.key}).status == 404


def test_two_different_credentials_are_refused_and_two_equal_ones_are_not(stage: Stage) -> None:
    other = stage.new_key("bob")
    for first, second in ((stage.key, other), (other, stage.key), (stage.key, "x"), ("x", stage.key)):
        headers = {"authorization": f"Bearer {first}", "x-api-key": second}
        reply = stage.request("GET", "/v1/jobs/x", key=None, headers=headers)
        assert (reply.status, reply.code) == (401, "unauthenticated")
        assert "different credentials" in reply.json["detail"]
    headers = {"authorization": f"Bearer {stage.key}", "x-api-key": stage.key}
    assert stage.request("GET", "/v1/jobs/x", key=None, headers=headers).status == 404


def test_a_key_that_has_expired(stage: Stage) -> None:
    assert stage.get("/v1/jobs/x", key=stage.new_key(expires_at=1)).code == "unauthenticated"


# caps


def test_the_caps(stage: Stage) -> None:
    stage.submit(URL)
    reply = submit(stage, {"targets": [{"url": f"{URL}2"}]})
    assert (reply.status, reply.code, reply.json["limit"]) == (429, "caller_busy", 1)
    assert int(reply.headers["retry-after"]) > 0
    for number in range(1, int(stage.environ["JOBS_TOTAL"])):
        key = stage.new_key(f"caller-{number}")
        assert stage.request("POST", "/v1/jobs", GOOD, key=key).status == 202
    late = stage.new_key("late")
    reply = submit(stage, GOOD, key=late)
    assert (reply.status, reply.code) == (503, "jobs_busy")
    assert int(reply.headers["retry-after"]) > 0
    stage.work()
    assert stage.request("POST", "/v1/jobs", GOOD, key=late).status == 202


def test_a_full_store(stage: Stage) -> None:
    key = stage.new_key("full", limits={"retained_jobs": 1})
    stage.request("POST", "/v1/jobs", GOOD, key=key)
    stage.work()
    reply = submit(stage, {"targets": [{"url": f"{URL}2"}]}, key=key)
    assert (reply.status, reply.code) == (429, "store_full")
    assert int(reply.headers["retry-after"]) > 0
