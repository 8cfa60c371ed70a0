"""Copies of an archive: which one is read, what is believed of it, and the limits and options that hold for it."""

from __future__ import annotations

import gzip

import pytest

from sift.content.client import FetchLimits
from tests.integration.content.conftest import Recovery
from tests.integration.content.loopback import respond
from tests.integration.content.wayback import BODY, MOMENT, Wayback


def test_a_redirect_to_the_nearest_capture_is_followed(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page)
    wayback.redirect(page, wayback.server.url(wayback.path(page, "20231231235958")))
    wayback.redirect(page, wayback.path(page, "20231231235959"), moment="20231231235958")
    wayback.capture(page, BODY, moment="20231231235959")
    meta = recovery.run(page).meta
    assert meta["recovered"]["captured_at"] == "2023-12-31T23:59:59Z"
    assert meta["recovered"]["url"] == wayback.server.url(wayback.path(page, "20231231235959"))
    assert [hop.rpartition("/web/")[2][:14] for hop in meta["redirects"]] == [MOMENT, "20231231235958"]


def test_a_captured_redirect_is_followed_within_the_archive(recovery: Recovery, wayback: Wayback) -> None:
    page, moved = recovery.server.url("/gone"), recovery.server.url("/moved/here")
    wayback.announce(page, status="301")
    wayback.redirect(page, wayback.path(moved))
    wayback.capture(moved, BODY)
    meta = recovery.run(page).meta
    assert (meta["url"], meta["final_url"]) == (page, moved)


@pytest.mark.parametrize(
    "location",
    [
        "{server}/elsewhere",
        "http://127.0.0.1:9/web/20240203040506id_/http://gone.test/",
        "http://169.254.169.254/latest/",
        "{wayback}/web/20240203040506/{page}",
        "{wayback}/web/20240203040506if_/{page}",
        "{wayback}/web/20241303040506id_/{page}",
        "{wayback}/website/20240203040506id_/{page}",
        "{wayback}/wayback/available?url=x",
        "https://127.0.0.1/web/20240203040506id_/{page}",
    ],
)
def test_a_redirect_to_anything_but_a_capture_is_not(recovery: Recovery, wayback: Wayback, location: str) -> None:
    page = recovery.server.url("/gone")
    recovery.server.routes["/elsewhere"] = respond(BODY)
    wayback.announce(page)
    target = location.format(server=recovery.server.url(""), wayback=wayback.server.url(""), page=page)
    wayback.redirect(page, target)
    assert "not allowed" in recovery.stands(page)
    assert (recovery.server.paths(), len(wayback.server.requests)) == (["/gone"], 2)


def test_memento_headers_are_believed(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/gone")
    links = (
        f'<{wayback.replay}/timemap/link/x>; rel="timemap"; type="application/link-format", '
        '<http://gone.test/old/place>; rel="original", '
        f'<{wayback.replay}/{MOMENT}/x>; rel="first memento"; datetime="Sat, 03 Feb 2024 04:05:06 GMT"'
    )
    headers = ("Memento-Datetime: Sat, 03 Feb 2024 04:05:00 GMT", f"Link: {links}")
    wayback.announce(page)
    wayback.capture(page, BODY, headers=headers)
    content = recovery.run(page)
    assert content.meta["recovered"]["captured_at"] == "2024-02-03T04:05:00Z"
    assert content.meta["final_url"] == "http://gone.test/old/place"
    assert "http://gone.test/x" in content.body.decode()


@pytest.mark.parametrize(
    ("memento", "link"),
    [
        ("yesterday", "nonsense"),
        ("Sat, 99 Feb 2024 04:05:00 GMT", '<http://127.0.0.1:9/>; rel="original"'),
        ("Fri, 31 Dec 9999 23:00:00 -1400", '<javascript:x>; rel=original; x="'),
        ("", "<" * 1000),
    ],
)
def test_memento_headers_that_say_nothing_do_no_harm(
    recovery: Recovery, wayback: Wayback, memento: str, link: str
) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page)
    wayback.capture(page, BODY, headers=(f"Memento-Datetime: {memento}", f"Link: {link}"))
    meta = recovery.run(page, options={"mode": "raw"}).meta
    assert (meta["recovered"]["captured_at"], meta["final_url"]) == ("2024-02-03T04:05:06Z", page)


def test_a_compressed_capture(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page)
    wayback.capture(page, gzip.compress(BODY), headers=("Content-Encoding: gzip",))
    content = recovery.run(page, options={"mode": "raw"})
    assert (content.body, content.media_type, content.meta["bytes"]) == (BODY, "text/html", len(BODY))


def test_options_hold_for_the_copy(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page)
    wayback.capture(page, BODY)
    error = recovery.fail(page, options={"pages": "1"})
    assert error.code == "bad_pages"
    assert error.meta["recovered"]["original_status"] == 404


def test_a_copy_has_the_limits_of_a_page(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page)
    wayback.capture(page, bytes(600_000))
    assert "over 500000 bytes" in recovery.stands(page, limits=FetchLimits(wire_bytes=500_000))
