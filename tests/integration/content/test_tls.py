"""TLS over HTTP/1.1 and HTTP/2: the certificate must be the host's, by a trusted authority, wherever it is served."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sift.targets import Content
from tests.integration.content.authority import DAY, Authority
from tests.integration.content.conftest import LoopbackResolver, OpenPipeline, failure, run
from tests.integration.content.loopback import Loopback, respond
from tests.integration.content.loopback2 import Answer2, Loopback2

RAW = {"mode": "raw"}
BODY = b"over tls"

Secure = Loopback | Loopback2
Start = Callable[..., Secure]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def start(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Start]:
    """Starts a server of either protocol that has a certificate for these names and serves `/a`."""
    servers: list[Secure] = []

    def open_one(
        *names: str, by: Authority = authority, host: str = "127.0.0.1", port: int = 0, **validity: timedelta
    ) -> Secure:
        server: Secure
        if request.param == "HTTP/2":
            context = by.serve_as(*names, alpn=("h2",), **validity)
            server = Loopback2(context, {"/a": Answer2(BODY)}, host=host, port=port)
        else:
            context = by.serve_as(*names, **validity)
            server = Loopback(routes={"/a": respond(BODY)}, tls=context, host=host, port=port)
        servers.append(server)
        return server

    yield open_one
    for server in servers:
        server.close()


def url(server: Secure, host: str, path: str = "/a") -> str:
    return f"https://{host}:{server.port}{path}"


def authorities(server: Secure) -> list[str]:
    """The hosts that were asked for, as the server read them."""
    if isinstance(server, Loopback2):
        return [request[":authority"] for request in server.requests]
    return [head.split(b"Host: ")[1].split(b"\r\n")[0].decode() for head in server.requests]


def fetch(open_pipeline: OpenPipeline, server: Secure, host: str, ca: Authority, **settings: Any) -> Content:
    settings = {"guard_allow": server.allow, "ca_file": str(ca.ca_file), "options": RAW} | settings
    return run(open_pipeline, url(server, host), **settings)


def refuse(open_pipeline: OpenPipeline, server: Secure, host: str, ca: Authority | None, **settings: Any) -> None:
    """It fails for its certificate, and not a word of HTTP was said."""
    settings = {"guard_allow": server.allow, "ca_file": str(ca.ca_file) if ca else None, "options": RAW} | settings
    error = failure(open_pipeline, url(server, host), **settings)
    assert error.code == "tls_failed"
    assert server.requests == []


def test_the_name_of_the_host_is_what_counts(start: Start, open_pipeline: OpenPipeline, authority: Authority) -> None:
    server = start("site.test")
    assert fetch(open_pipeline, server, "site.test", authority).body == BODY
    assert authorities(server) == [f"site.test:{server.port}"]
    if isinstance(server, Loopback2):
        assert server.names == ["site.test"]


@pytest.mark.parametrize("host", ["other.test", "127.0.0.1", "a.site.test", "site.test.other.test"])
def test_a_certificate_for_another_name(
    start: Start, open_pipeline: OpenPipeline, authority: Authority, host: str
) -> None:
    refuse(open_pipeline, start("site.test"), host, authority)


def test_a_wildcard_is_one_label(start: Start, open_pipeline: OpenPipeline, authority: Authority) -> None:
    server = start("*.site.test")
    refuse(open_pipeline, server, "a.b.site.test", authority)
    assert fetch(open_pipeline, server, "a.site.test", authority).body == BODY


def test_an_authority_that_nobody_trusts(
    start: Start, open_pipeline: OpenPipeline, authority: Authority, tmp_path: Path
) -> None:
    server = start("site.test")
    refuse(open_pipeline, server, "site.test", None)
    refuse(open_pipeline, server, "site.test", Authority(tmp_path, "Test Authority 2"))


@pytest.mark.parametrize("validity", [(-2 * DAY, -DAY), (DAY, 2 * DAY)], ids=["expired", "not yet"])
def test_a_certificate_that_is_not_valid_now(
    start: Start, open_pipeline: OpenPipeline, authority: Authority, validity: tuple[timedelta, timedelta]
) -> None:
    refuse(open_pipeline, start("site.test", start=validity[0], end=validity[1]), "site.test", authority)


def test_the_environment_does_not_say_whom_to_trust(
    start: Start, open_pipeline: OpenPipeline, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
    monkeypatch.setenv("SSL_CERT_DIR", str(authority.ca_file.parent))
    refuse(open_pipeline, start("site.test"), "site.test", None)


@pytest.mark.parametrize("host", ["bücher.test", "BÜCHER.test.", "xn--bcher-kva.test"])
def test_an_international_name(start: Start, open_pipeline: OpenPipeline, authority: Authority, host: str) -> None:
    server = start("xn--bcher-kva.test")
    assert fetch(open_pipeline, server, host, authority).body == BODY
    assert authorities(server) == [f"xn--bcher-kva.test:{server.port}"]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_an_address_as_host(start: Start, open_pipeline: OpenPipeline, authority: Authority, address: str) -> None:
    literal = f"[{address}]" if ":" in address else address
    server = start(address, host=address)
    allow = f"{literal}:{server.port}"
    assert fetch(open_pipeline, server, literal, authority, guard_allow=allow).body == BODY
    assert authorities(server) == [allow]


def test_the_connection_goes_to_the_address_that_was_checked(
    start: Start, open_pipeline: OpenPipeline, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name moves right after its first answer, to a server that has a certificate for it as well."""
    looked_up: list[Any] = []
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *a, **k: looked_up.append(host) or real(host, *a, **k))
    server = start("flip.test")
    decoy = start("flip.test", host="127.0.0.2", port=server.port)
    names = LoopbackResolver({"flip.test": [["127.0.0.1"], ["127.0.0.2"]]})
    content = fetch(
        open_pipeline, server, "flip.test", authority, resolver=names, guard_allow=f"{server.allow},{decoy.allow}"
    )
    assert content.body == BODY
    assert (server.connections, decoy.connections) == (1, 0)
    assert names.asked == ["flip.test"]
    assert "flip.test" not in looked_up


def test_the_next_address_is_tried_when_one_is_closed(
    start: Start, open_pipeline: OpenPipeline, authority: Authority
) -> None:
    server = start("site.test")
    names = LoopbackResolver({"site.test": [["127.0.0.3", "127.0.0.1"]]})
    allow = f"127.0.0.3:{server.port},{server.allow}"
    assert fetch(open_pipeline, server, "site.test", authority, resolver=names, guard_allow=allow).body == BODY


def test_a_server_that_speaks_no_tls(server: Loopback, open_pipeline: OpenPipeline, authority: Authority) -> None:
    error = failure(open_pipeline, server.url("/a", "site.test", "https"), options=RAW, ca_file=str(authority.ca_file))
    assert error.code == "tls_failed"


def test_a_step_down_to_http_is_noted(
    start: Start, server: Loopback, open_pipeline: OpenPipeline, authority: Authority
) -> None:
    secure = start("site.test")
    down = server.url("/b", "site.test")
    if isinstance(secure, Loopback2):
        secure.routes["/a"] = Answer2(status="302", headers=[("location", down)])
    else:
        secure.routes["/a"] = respond(status=302, headers=(f"Location: {down}",))
    server.routes["/b"] = respond(b"plain", content_type="text/plain")
    content = fetch(open_pipeline, secure, "site.test", authority, guard_allow=f"{secure.allow},{server.allow}")
    assert content.body == b"plain"
    assert content.meta["warnings"] == ["A redirect went from https to http."]
