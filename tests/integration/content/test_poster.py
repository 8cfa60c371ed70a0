"""The guarded post: where it goes, what it sends, and what is made of whatever a receiver does."""

from __future__ import annotations

import asyncio
import dataclasses
import json

import pytest

from sift.connections import make_tls_context
from sift.content.addresses import parse_allow
from sift.content.denials import DenyList
from sift.content.guard import Guard
from sift.content.phases import PhaseTimeouts
from sift.content.poster import TIMEOUTS, GuardedPoster, Posted
from sift.errors import TargetBusy, TargetFailed
from tests.integration.content.conftest import LoopbackResolver
from tests.integration.content.loopback import Loopback, respond

BODY = json.dumps({"type": "job.ended"}).encode()
SHORT = dataclasses.replace(TIMEOUTS, read=0.3)


def post(
    server: Loopback,
    path: str = "/",
    *,
    host: str = "hooks.example.com",
    resolver: LoopbackResolver | None = None,
    timeouts: PhaseTimeouts = TIMEOUTS,
    deadline_s: float = 60.0,
    allow: str | None = None,
) -> Posted:
    guard = Guard(
        resolver or LoopbackResolver(), parse_allow(server.allow if allow is None else allow), DenyList(frozenset())
    )
    poster = GuardedPoster(guard, "sift/0.1", make_tls_context(None), timeouts)
    return asyncio.run(poster.post(server.url(path, host), {"webhook-id": "msg_1"}, BODY, deadline_s))


def test_a_post_says_what_it_is(server: Loopback) -> None:
    server.routes["/hook?a=1"] = respond(b"", status=204)
    assert post(server, "/hook?a=1") == Posted(204)
    (head,) = server.requests
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /hook?a=1 HTTP/1.1"
    sent = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines[1:] if ":" in line}
    assert sent["host"] == f"hooks.example.com:{server.port}"
    assert sent["content-type"] == "application/json"
    assert sent["content-length"] == str(len(BODY))
    assert (sent["webhook-id"], sent["user-agent"]) == ("msg_1", "sift/0.1")


@pytest.mark.parametrize("status", [200, 301, 302, 307, 308, 400, 410, 500])
def test_a_status_is_answered_as_it_is_and_no_redirect_is_followed(server: Loopback, status: int) -> None:
    server.routes["/"] = respond(b"x" * 100, status=status, headers=(f"Location: {server.url('/other')}",))
    assert post(server).status == status
    assert server.paths() == ["/"]


def test_when_to_come_back_is_read(server: Loopback) -> None:
    server.routes["/"] = respond(status=429, headers=("Retry-After: 120",))
    assert post(server) == Posted(429, 120.0)


@pytest.mark.parametrize(
    ("answer", "code"),
    [(["<hang>"], "timeout"), ([b"HTTP/1.1 200 OK\r\nX: ", "<drip>"], "timeout"), (["<reset>"], "busy"),
     ([b""], "connect_failed"), ([b"no HTTP at all\r\n\r\n"], "connect_failed")],
)  # fmt: skip
def test_a_receiver_that_is_none(server: Loopback, answer: list[bytes | str], code: str) -> None:
    server.routes["/"] = [part.encode() if isinstance(part, str) else part for part in answer]
    with pytest.raises((TargetFailed, TargetBusy)) as failed:
        post(server, timeouts=SHORT, deadline_s=2.0)
    assert failed.value.code == code


def test_an_answer_that_never_ends_is_not_read(server: Loopback) -> None:
    server.routes["/"] = [b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", b"<hang>"]
    assert post(server).status == 200


def test_a_receiver_that_refuses_connections(server: Loopback) -> None:
    server.close()
    with pytest.raises(TargetBusy):
        post(server)


def test_an_address_that_is_not_allowed(server: Loopback) -> None:
    for host, resolver in (
        ("127.0.0.1", None),
        ("hooks.example.com", None),  # a name that resolves into a private network
        ("hooks.example.com", LoopbackResolver({"hooks.example.com": [["93.184.216.34", "127.0.0.1"]]})),
        ("localhost", None),
    ):
        with pytest.raises(TargetFailed) as refused:
            post(server, host=host, resolver=resolver, allow="")
        assert refused.value.code == "blocked_address"
    assert server.connections == 0


def test_each_post_is_judged_anew(server: Loopback) -> None:
    server.routes["/"] = respond(status=200)
    resolver = LoopbackResolver({"hooks.example.com": [["127.0.0.1"], ["10.0.0.1"]]})
    assert post(server, resolver=resolver).status == 200
    with pytest.raises(TargetFailed) as refused:
        post(server, resolver=resolver)
    assert refused.value.code == "blocked_address"
    assert server.connections == 1


def test_a_name_that_does_not_resolve(server: Loopback) -> None:
    with pytest.raises(TargetFailed) as failed:
        post(server, resolver=LoopbackResolver({"hooks.example.com": [[]]}))
    assert failed.value.code == "dns_failed"
