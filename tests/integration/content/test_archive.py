"""`recover`: a page that is gone is read from an archive, and whatever the archive does, the target ends as it must."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from sift.content.client import FetchLimits
from sift.content.phases import PhaseTimeouts
from sift.errors import TargetBusy, TargetFailed
from sift.targets import Content, FetchOptions
from tests.integration.content.conftest import LoopbackResolver, OpenPipeline, play
from tests.integration.content.loopback import Loopback, respond
from tests.integration.content.wayback import MOMENT, Wayback

PROSE = "The lighthouse was lit for the last time in the spring, and its keeper wrote down the hour in the book. "
TEXT = f"{PROSE * 3}He left <a href='../x'>the island</a>. {PROSE}"
BODY = f"<html><body><article><h1>Last light</h1><p>{TEXT}</p></article></body></html>".encode()


@pytest.fixture
def wayback() -> Iterator[Wayback]:
    made = Wayback()
    yield made
    made.server.close()


class Recovery:
    """A pipeline that recovers from the archive, and what became of a target."""

    def __init__(self, server: Loopback, wayback: Wayback, open_pipeline: OpenPipeline) -> None:
        self.server = server
        self.wayback = wayback
        self._open = open_pipeline

    def run(self, url: str, *, deadline_s: float = 20.0, gone: TargetFailed | None = None, **settings: Any) -> Content:
        options = FetchOptions(**{"recover": True, **settings.pop("options", {})})
        allow = f"{self.server.allow},{self.wayback.allow}"
        values = {"archive_api": self.wayback.api, "archive_replay": self.wayback.replay, "guard_allow": allow}

        async def main() -> Content:
            async with self._open(**{**values, **settings}) as pipeline:
                return await pipeline.run(url, options, deadline_s, gone=gone)

        return play(main())

    def fail(self, url: str, **settings: Any) -> TargetFailed:
        with pytest.raises(TargetFailed) as caught:
            self.run(url, **settings)
        return caught.value

    def stands(self, url: str, **settings: Any) -> str:
        """The page's own 404 stands; the one warning that says why."""
        error = self.fail(url, **settings)
        assert (error.code, error.status) == ("http_error", 404)
        (warning,) = error.meta["warnings"]
        assert json.loads(json.dumps(error.meta)) == error.meta
        return str(warning)


@pytest.fixture
def recovery(server: Loopback, wayback: Wayback, open_pipeline: OpenPipeline) -> Recovery:
    return Recovery(server, wayback, open_pipeline)


# what is recovered


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


# the capture


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


# an archive that has nothing, fails, or lies


@pytest.mark.parametrize(
    "answer",
    [
        {"url": "x", "archived_snapshots": {}},
        {"archived_snapshots": {"closest": {}}},
        {"archived_snapshots": {"closest": {"available": False, "timestamp": MOMENT, "status": "200"}}},
        {"archived_snapshots": {"closest": {"available": "true", "timestamp": MOMENT, "status": "200"}}},
        {"archived_snapshots": {"closest": {"available": True, "timestamp": MOMENT, "status": "404"}}},
        {"archived_snapshots": {"closest": {"available": True, "timestamp": MOMENT, "status": "503"}}},
        {"archived_snapshots": {"closest": {"available": True, "timestamp": "2024", "status": "200"}}},
        {"archived_snapshots": {"closest": {"available": True, "timestamp": "20241303040506", "status": "200"}}},
        {"archived_snapshots": {"closest": {"available": True, "timestamp": "../../../../x/", "status": "200"}}},
        {"archived_snapshots": {"closest": {"available": True, "timestamp": int(MOMENT), "status": "200"}}},
        {"archived_snapshots": [{"closest": 1}]},
        respond(b"[]"),
        respond(b'"archived_snapshots"'),
    ],
    ids=lambda answer: str(answer)[-70:],
)
def test_an_archive_without_a_copy(recovery: Recovery, wayback: Wayback, answer: Any) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page, answer)
    assert recovery.stands(page) == "The archive has no copy of the page."
    assert wayback.replayed == []


@pytest.mark.parametrize(
    "answer",
    [
        respond(b"<html>Sorry</html>"),
        respond(b'{"archived_snapshots": '),
        respond(b"[" * 60_000),
        respond(b"\xff\xfe\xff"),
        respond(b'{"archived_snapshots": {"closest": {"timestamp": ' + b"9" * 20_000 + b"}}}"),
        respond(b" " * 70_000 + b"{}"),
        respond(gzip.compress(bytes(10 << 20)), headers=("Content-Encoding: gzip",)),
        respond(status=500),
        respond(status=429, headers=("Retry-After: 1",)),
        respond(status=302, headers=("Location: http://169.254.169.254/",)),
        b"",
    ],
    ids=["html", "cut", "deep", "bytes", "number", "huge", "bomb", "500", "429", "redirect", "nothing"],
)
def test_an_archive_that_fails(recovery: Recovery, wayback: Wayback, answer: bytes) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page, answer)
    assert recovery.stands(page).startswith("The archive gave no copy: ")
    assert wayback.replayed == []


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_a_captured_error_is_no_copy(recovery: Recovery, wayback: Wayback, status: int) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page)
    wayback.capture(page, b"Sorry, no such page", status=status)
    assert recovery.stands(page) == f"The archive gave no copy: The server answered {status}."


@pytest.mark.parametrize("slow", ["api", "replay"])
def test_a_slow_archive_leaves_the_error_of_the_page(recovery: Recovery, wayback: Wayback, slow: str) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page, [b"<hang>"] if slow == "api" else None)
    wayback.server.routes[wayback.path(page)] = [b"HTTP/1.1 200 X\r\n\r\nx", b"<hang>"]
    assert "in time" in recovery.stands(page, deadline_s=6.0)


def test_an_archive_whose_connection_hangs(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page, [b"<hang>"])
    assert "did not answer in time" in recovery.stands(page, timeouts=PhaseTimeouts(read=0.2))


def test_the_archive_passes_the_guard(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page)
    assert "not allowed" in recovery.stands(page, guard_allow=recovery.server.allow)
    assert wayback.server.requests == []


@pytest.mark.parametrize("off", ["archive_api", "archive_replay"])
def test_without_an_archive(recovery: Recovery, wayback: Wayback, off: str) -> None:
    assert "No archive is set up" in recovery.stands(recovery.server.url("/gone"), **{off: ""})
    assert wayback.server.requests == []


def test_a_copy_has_the_limits_of_a_page(recovery: Recovery, wayback: Wayback) -> None:
    page = recovery.server.url("/gone")
    wayback.announce(page)
    wayback.capture(page, bytes(600_000))
    assert "over 500000 bytes" in recovery.stands(page, limits=FetchLimits(wire_bytes=500_000))
