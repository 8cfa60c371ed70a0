"""`recover`: a page that is gone is read from an archive, and nothing else is looked up there."""

from __future__ import annotations

import socket

import pytest

from sift.errors import TargetBusy, TargetFailed
from tests.integration.content.conftest import LoopbackResolver, Recovery
from tests.integration.content.loopback import respond
from tests.integration.content.wayback import BODY, MOMENT, Wayback


def test_a_page_that_is_gone_is_read_from_the_archive(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/a/last-light?x=1&y=%C3%BC")
    wayback.announce(page)
    wayback.capture(page, BODY)
    content = recovery.run(page)
    assert "lit for the last time" in content.body.decode()
    assert content.meta["recovered"] == {
        "archive": "127.0.0.1",
        "url": f"{wayback.replay}/{MOMENT}id_/{page}",
        "captured_at": "2024-02-03T04:05:06Z",
        "original_status": 404,
        "original_error": "http_error",
    }
    assert (content.meta["url"], content.meta["final_url"], content.meta["status"]) == (page, page, 200)
    assert recovery.server.url("/x") in content.body.decode(), "its links are those of the page, not of the archive"
    assert (len(wayback.asked), len(wayback.replayed)) == (1, 1)


def test_a_page_that_is_there_is_not_looked_up(recovery: Recovery, wayback: Wayback) -> None:
    recovery.server.routes["/a"] = respond(BODY)
    assert recovery.run(recovery.server.url("/a")).meta["recovered"] is None
    assert wayback.server.requests == []


def test_the_archive_learns_the_address_and_nothing_else(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/gone")
    recovery.server.routes["/gone"] = respond(status=404, headers=("Set-Cookie: site=s3cret; Path=/",))
    wayback.announce(page)
    wayback.capture(page, BODY, headers=('ETag: "archive"', "Last-Modified: Sat, 03 Feb 2024 04:05:06 GMT"))
    headers = {"Authorization": "Bearer s3cret", "Cookie": "mine=s3cret", "Referer": "https://example.com/s3cret"}
    meta = recovery.run(page, options={"headers": headers}).meta
    assert b"s3cret" in recovery.server.requests[0]
    assert len(wayback.server.requests) == 2
    assert b"s3cret" not in b"".join(wayback.server.requests)
    assert (meta["etag"], meta["last_modified"]) == (None, None), "they are not the page's own"


def test_nothing_is_looked_up_unless_asked_for(recovery: Recovery, wayback: Wayback) -> None:
    error = recovery.fail(recovery.server.url("/gone"), options={"recover": False})
    assert (error.status, error.meta, wayback.server.requests) == (404, {}, [])


@pytest.mark.parametrize("status", [404, 410, 500, 501, 505])
def test_statuses_that_say_gone(recovery: Recovery, wayback: Wayback, status: int) -> None:
    page = recovery.server.url("/gone")
    recovery.server.routes["/gone"] = respond(status=status)
    wayback.announce(page)
    wayback.capture(page, BODY)
    recovered = recovery.run(page, options={"mode": "raw"}).meta["recovered"]
    assert (recovered["original_status"], recovered["original_error"]) == (status, "http_error")


@pytest.mark.parametrize("status", [400, 401, 403, 451])
def test_statuses_that_do_not(recovery: Recovery, wayback: Wayback, status: int) -> None:
    recovery.server.routes["/a"] = respond(status=status)
    assert recovery.fail(recovery.server.url("/a")).status == status
    assert wayback.server.requests == []


def test_a_busy_server_is_not_gone_until_it_is_given_up(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/a")
    recovery.server.routes["/a"] = respond(status=503)
    wayback.announce(page)
    wayback.capture(page, BODY)
    with pytest.raises(TargetBusy):
        recovery.run(page)
    assert wayback.server.requests == []
    asked = len(recovery.server.requests)
    gone = TargetFailed("busy", "It was busy for too long.", status=503)
    recovered = recovery.run(page, gone=gone).meta["recovered"]
    assert (recovered["original_status"], recovered["original_error"]) == (503, "busy")
    assert len(recovery.server.requests) == asked, "the page itself is not asked again"


@pytest.mark.parametrize("gone", [TargetFailed("busy", "429", status=429), TargetFailed("busy", "It refuses.")])
def test_a_server_that_turns_away_is_not_gone(recovery: Recovery, wayback: Wayback, gone: TargetFailed) -> None:
    assert recovery.fail(recovery.server.url("/a"), gone=gone) is gone
    assert wayback.server.requests == []


class _Nowhere(LoopbackResolver):
    async def resolve(self, host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_a_name_that_is_gone(recovery: Recovery, wayback: Wayback) -> None:
    wayback.announce("http://gone.test/a")
    wayback.capture("http://gone.test/a", BODY)
    content = recovery.run("http://gone.test/a#part", resolver=_Nowhere(), options={"mode": "raw"})
    assert content.body == BODY
    recovered = content.meta["recovered"]
    assert (recovered["original_status"], recovered["original_error"]) == (None, "dns_failed")


def test_a_certificate_that_is_gone(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/a", scheme="https")
    wayback.announce(page)
    wayback.capture(page, BODY)
    assert recovery.run(page).meta["recovered"]["original_error"] == "tls_failed"


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9/", "http://169.254.169.254/", "http://localhost/", "http://a b/", "http://user@gone.test/"],
)
def test_what_the_guard_refuses_is_not_looked_up(recovery: Recovery, wayback: Wayback, url: str) -> None:
    assert recovery.fail(url).code in ("blocked_address", "invalid_url")
    assert wayback.server.requests == []


def test_a_redirect_that_the_guard_refuses_is_not_looked_up(recovery: Recovery, wayback: Wayback) -> None:
    recovery.server.routes["/a"] = respond(status=302, headers=("Location: http://10.0.0.1/",))
    assert recovery.fail(recovery.server.url("/a")).code == "blocked_address"
    assert wayback.server.requests == []


@pytest.mark.parametrize(
    ("answer", "options", "code"),
    [
        (respond(b"\x89PNG\r\n\x1a\n" + bytes(99), content_type="image/png"), {}, "unsupported_media"),
        (respond(BODY), {"pages": "1"}, "bad_pages"),
        (respond(b"", headers=("X-Long: " + "a" * 80_000,)), {}, "too_large"),
        (b"no http", {}, "connect_failed"),
    ],
    ids=["media", "option", "size", "broken-off"],
)
def test_other_failures_are_not_looked_up(
    recovery: Recovery, wayback: Wayback, answer: bytes, options: dict[str, str], code: str
) -> None:
    recovery.server.routes["/a"] = answer
    assert recovery.fail(recovery.server.url("/a"), options=options).code == code
    assert wayback.server.requests == []
