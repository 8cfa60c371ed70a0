"""robots.txt, over real connections on loopback and read in real child processes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sift.content.robots import MOST_BYTES, READ_BYTES
from sift.errors import TargetBusy, TargetFailed
from sift.targets import FetchOptions
from tests.integration.content.conftest import OpenPipeline, failure, run
from tests.integration.content.loopback import Loopback, respond

PAGE = b"A page with some words in it.\n"
ASKED: dict[str, Any] = {"mode": "raw", "robots": True}


def site(server: Loopback, rules: bytes, status: int = 200) -> None:
    server.routes["/robots.txt"] = respond(rules, status=status, content_type="text/plain")
    for path in ("/open/page", "/closed/page", "/closed/but/this"):
        server.routes[path] = respond(PAGE, content_type="text/plain")


def outcome(open_pipeline: OpenPipeline, url: str) -> bytes | str:
    """The page, or the code of its error."""
    try:
        return run(open_pipeline, url, options=ASKED).body
    except TargetFailed as error:
        return error.code


def paths(server: Loopback) -> list[str]:
    return [request.split(b" ")[1].decode() for request in server.requests]


RULES = b"\xef\xbb\xbfUser-agent: *\nDisallow: /closed/\nAllow: /closed/but/\n\nUser-agent: nobody\nDisallow: /\n"


def test_what_a_site_does_not_allow_is_not_fetched(server: Loopback, open_pipeline: OpenPipeline) -> None:
    site(server, RULES)

    async def story() -> list[str]:
        codes = []
        async with open_pipeline(guard_allow=f"127.0.0.1:{server.port}") as pipeline:
            for path in ("/closed/page", "/open/page", "/closed/but/this", "/closed/page"):
                try:
                    await pipeline.run(server.url(path), FetchOptions(**ASKED), 30.0)
                except TargetFailed as error:
                    codes.append(error.code if error.hint else "no hint")
        return codes

    assert asyncio.run(story()) == ["robots_disallowed"] * 2
    assert paths(server) == ["/robots.txt", "/open/page", "/closed/but/this"], "the file is asked for once"


def test_it_is_asked_for_once_by_all_of_a_batch(server: Loopback, open_pipeline: OpenPipeline) -> None:
    site(server, RULES)

    async def story() -> None:
        async with open_pipeline(guard_allow=f"127.0.0.1:{server.port}") as pipeline:
            await asyncio.gather(
                *(pipeline.run(server.url("/open/page"), FetchOptions(**ASKED), 60.0) for _ in range(4))
            )

    asyncio.run(story())
    assert sorted(paths(server)) == ["/open/page"] * 4 + ["/robots.txt"]


@pytest.mark.parametrize(
    ("setting", "option", "asked"),
    [(False, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
def test_the_option_wins_over_the_deployment(
    server: Loopback, open_pipeline: OpenPipeline, setting: bool, option: bool | None, asked: bool
) -> None:
    site(server, RULES)
    options = {"mode": "raw", "robots": option}
    run(open_pipeline, server.url("/open/page"), options=options, robots=setting)
    assert ("/robots.txt" in paths(server)) == asked


def test_the_rules_are_those_for_the_agent_that_the_page_would_see(
    server: Loopback, open_pipeline: OpenPipeline
) -> None:
    site(server, RULES)
    named = ASKED | {"headers": {"User-Agent": "nobody/2"}}
    assert failure(open_pipeline, server.url("/open/page"), options=named).code == "robots_disallowed"
    run(open_pipeline, server.url("/open/page"), options=ASKED, user_agent="reader/1")


def test_addresses_in_the_agent_name_no_robot(server: Loopback, open_pipeline: OpenPipeline) -> None:
    site(server, b"User-agent: example\nUser-agent: bot\nUser-agent: ann\nDisallow: /\n")
    for agent in ("reader/1 (+https://example.com/bot; ann@bot.example)", "reader/1 +https://example.com/bot"):
        run(open_pipeline, server.url("/open/page"), options=ASKED, user_agent=agent)
    named = failure(
        open_pipeline, server.url("/open/page"), options=ASKED, user_agent="Any/1 (x; bot/2; +http://a.example)"
    )
    assert named.code == "robots_disallowed"


@pytest.mark.parametrize("form", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_the_mark_of_another_form_is_read(server: Loopback, open_pipeline: OpenPipeline, form: str) -> None:
    text = "\ufeff" * (form == "utf-16-be") + "User-agent: *\nDisallow: /closed/\n"
    site(server, text.encode(form))
    assert outcome(open_pipeline, server.url("/closed/page")) == "robots_disallowed"
    assert outcome(open_pipeline, server.url("/open/page")) == PAGE


@pytest.mark.parametrize(
    "location", ["http://10.0.0.1/robots.txt", "http://localhost/", "ftp://example.com/", "http://"]
)
def test_a_file_that_leads_nowhere_counts_as_a_no_and_is_asked_for_once(
    server: Loopback, open_pipeline: OpenPipeline, location: str
) -> None:
    site(server, RULES)
    server.routes["/robots.txt"] = respond(status=302, headers=(f"Location: {location}",))

    async def story() -> list[str]:
        codes = []
        async with open_pipeline(guard_allow=f"127.0.0.1:{server.port}") as pipeline:
            for _ in range(2):
                with pytest.raises(TargetFailed) as caught:
                    await pipeline.run(server.url("/open/page"), FetchOptions(**ASKED), 30.0)
                codes.append(caught.value.code)
        return codes

    assert asyncio.run(story()) == ["robots_disallowed"] * 2
    assert paths(server) == ["/robots.txt"]


def test_a_target_with_little_time_closes_the_site_to_nobody_else(
    server: Loopback, open_pipeline: OpenPipeline
) -> None:
    site(server, RULES)
    answer = server.routes["/robots.txt"]
    server.routes["/robots.txt"] = [b"<hang>"]

    async def story() -> bytes:
        async with open_pipeline(guard_allow=f"127.0.0.1:{server.port}") as pipeline:
            with pytest.raises(TargetFailed) as caught:
                await pipeline.run(server.url("/open/page"), FetchOptions(**ASKED), 0.5)
            assert caught.value.code == "timeout"
            server.routes["/robots.txt"] = answer
            return (await pipeline.run(server.url("/open/page"), FetchOptions(**ASKED), 60.0)).body

    assert asyncio.run(story()) == PAGE


@pytest.mark.parametrize("status", [404, 403, 410])
def test_a_site_without_one_allows_everything(server: Loopback, open_pipeline: OpenPipeline, status: int) -> None:
    site(server, b"User-agent: *\nDisallow: /\n", status)
    assert run(open_pipeline, server.url("/closed/page"), options=ASKED).body == PAGE


@pytest.mark.parametrize("status", [500, 501])
def test_a_site_whose_file_is_in_trouble_allows_nothing(
    server: Loopback, open_pipeline: OpenPipeline, status: int
) -> None:
    site(server, b"", status)
    error = failure(open_pipeline, server.url("/open/page"), options=ASKED)
    assert error.code == "robots_disallowed"
    assert "later" in error.hint


@pytest.mark.parametrize("status", [429, 502, 503])
def test_a_busy_site_is_tried_again(server: Loopback, open_pipeline: OpenPipeline, status: int) -> None:
    site(server, b"", status)
    with pytest.raises(TargetBusy):
        run(open_pipeline, server.url("/open/page"), options=ASKED)


def test_a_file_is_read_up_to_its_limit(server: Loopback, open_pipeline: OpenPipeline) -> None:
    beyond = b"User-agent: *\nAllow: /\n" + b"#" * READ_BYTES + b"\nDisallow: /open/\n"
    site(server, beyond)
    assert run(open_pipeline, server.url("/open/page"), options=ASKED).body == PAGE
    site(server, b"#" * (MOST_BYTES + 1))
    assert failure(open_pipeline, server.url("/open/page"), options=ASKED).code == "robots_disallowed"


@pytest.mark.parametrize(
    "rules",
    [
        b"", b"\x00\xff\xfe" * 1_000, b"Disallow: /\n", b"<!doctype html><title>Not found</title>",
        b"User-agent: *\nDisallow: " + b"*" * 100_000 + b"nowhere$\n",
        b"User-agent: *\nDisallow: /" + b"*a" * 20_000 + b"$\n",
    ],
    ids=["empty", "bytes", "nobody's", "a page", "stars", "stars and letters"],
)  # fmt: skip
def test_whatever_the_file_is_the_target_ends(server: Loopback, open_pipeline: OpenPipeline, rules: bytes) -> None:
    site(server, rules)
    assert outcome(open_pipeline, server.url("/open/page")) in {PAGE, "robots_disallowed"}


def test_a_hostile_pattern_hangs_its_child_and_nobody_else(server: Loopback, open_pipeline: OpenPipeline) -> None:
    site(server, b"User-agent: *\nDisallow: /" + b"*a" * 40 + b"*b$\n")
    url = server.url("/open/page?" + "a" * 3_000)
    server.routes["/open/page?" + "a" * 3_000] = respond(PAGE, content_type="text/plain")
    assert outcome(open_pipeline, url) in {PAGE, "robots_disallowed"}
