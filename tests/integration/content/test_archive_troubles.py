"""An archive that has nothing, fails or lies: the page's own error stands, with a warning."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from sift.content.phases import PhaseTimeouts
from tests.integration.content.conftest import Recovery
from tests.integration.content.loopback import respond
from tests.integration.content.wayback import MOMENT, Wayback


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
