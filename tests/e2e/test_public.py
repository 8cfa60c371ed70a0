"""What a service shows to everybody."""

from __future__ import annotations

from tests.e2e.service import Service


def test_it_says_that_it_is_well(stranger: Service) -> None:
    answer = stranger.call("GET /healthz").expect(200)
    assert answer.json["status"] == "ok"
    assert answer.json["version"]


def test_it_describes_itself(stranger: Service) -> None:
    document = stranger.call("GET /openapi.json").expect(200).json
    assert document["openapi"].startswith("3.")
    assert {"get", "post"} <= set(document["paths"]["/v1/jobs"])


def test_it_has_a_page_to_try_it(stranger: Service) -> None:
    page = stranger.call("GET /docs").expect(200)
    assert page.headers["content-type"].startswith("text/html")
    assert b"swagger" in page.raw.lower()
