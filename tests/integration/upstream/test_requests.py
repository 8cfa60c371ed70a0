"""What is sent to a gateway, where it goes, and what is told of it to nobody else."""

from __future__ import annotations

import json
import logging
import ssl
from pathlib import Path

import pytest

from sift.errors import TargetBusy, TargetCut, TargetFailed
from sift.gateway import Gateway, GatewayFailed
from sift.model_requests import UpstreamRequest
from sift.upstream import Upstream
from tests.integration.upstream.conftest import IDENTITY, SECRET, ask, make_request, make_upstream, send, unused_port
from tests.integration.upstream.stub import USAGE, StubGateway, completion


def test_a_request_and_its_response(stub: StubGateway, folder: Path) -> None:
    response, body = ask(stub, folder, {"headers": ["X-Request-Id: gw-7"], "content_type": "application/json; x=1"})
    assert (response.status, response.media_type) == (200, "application/json; x=1")
    assert (response.request_id, response.usage, body) == ("gw-7", USAGE, completion().encode())
    (sent,) = stub.received
    assert (sent.path, json.loads(sent.body)["model"]) == ("/v1/chat/completions", "m")
    expected = {
        "authorization": f"Bearer {SECRET}", "content-type": "application/json", "accept-encoding": "identity",
        "accept": "*/*", "user-agent": "sift/0.1.0", "x-request-id": "req_1", "x-sift-service-class": "batch",
        "x-sift-tenant": "acme", "x-sift-actor": "ann", "x-sift-subject": "Ann%20%C3%96.",
        "x-sift-application": "notebook",
    }  # fmt: skip
    assert {name.lower(): value for name, value in sent.headers} == expected | {
        "host": f"127.0.0.1:{stub.port}", "connection": "keep-alive", "content-length": str(len(sent.body)),
    }  # fmt: skip


def test_what_is_not_known_is_left_out(stub: StubGateway, folder: Path) -> None:
    upstream = Upstream(Gateway(stub.url(), None, ssl.create_default_context()), folder)
    response, _ = send(upstream, UpstreamRequest("/v1/x", b"{}", {"tenant": "acme"}, "r"))
    (sent,) = stub.received
    names = {name.lower() for name, _ in sent.headers}
    assert {name for name in names if name.startswith("x-sift")} == {"x-sift-tenant", "x-sift-service-class"}
    assert "authorization" not in names
    assert response.request_id is None


HOSTILE = "a\r\nX-Sift-Actor: root\r\n\r\nGET /evil HTTP/1.1\r\n\x00\u2028\ud800 %0d%0a"


def test_no_value_becomes_another_header(stub: StubGateway, folder: Path) -> None:
    identity = {name: HOSTILE + name for name in IDENTITY}
    send(make_upstream(stub.url(), folder), UpstreamRequest("/v1/x", b"{}", identity, HOSTILE))
    (sent,) = stub.received
    assert sent.path == "/v1/x"
    assert sent.header("x-sift-actor") == (
        "a%0D%0AX-Sift-Actor:%20root%0D%0A%0D%0AGET%20/evil%20HTTP/1.1%0D%0A%00%E2%80%A8?%20%250d%250aactor"
    )
    assert len(sent.headers) == 14


@pytest.mark.parametrize(
    "path",
    [
        "", "v1/x", "//evil.example/x", "@evil.example/x", "/v1/../admin", "/v1/./x", "/v1/x y", "/v1/x\r\nX: y",
        "/v1/é", "/v1/x#y", "/v1/\\x", "https://evil.example/",
    ],
)  # fmt: skip
def test_a_path_that_is_not_what_it_says_is_not_sent(stub: StubGateway, folder: Path, path: str) -> None:
    with pytest.raises(TargetFailed) as caught:
        send(make_upstream(stub.url(), folder), make_request(path))
    assert caught.value.code == "invalid_url"
    assert stub.received == []


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("/v1", "/v1/messages", "/v1/messages"),
        ("/v1/", "/api/chat", "/api/chat"),
        ("", "/api/chat", "/api/chat"),
        ("/llm/v1", "/v1/messages", "/llm/v1/messages"),
        ("/llm", "/api/chat", "/llm/api/chat"),
    ],
)
def test_paths_are_put_behind_the_gateways_root(
    stub: StubGateway, folder: Path, base: str, path: str, expected: str
) -> None:
    send(make_upstream(stub.url(base), folder), make_request(path))
    assert [sent.path for sent in stub.received] == [expected]


def test_proxies_of_the_environment_are_not_used(
    stub: StubGateway, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert ask(stub, folder)[0].status == 200


def test_a_secret_that_can_not_be_used_makes_requests_wait(
    stub: StubGateway, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def unreadable() -> str:
        raise GatewayFailed("its secret could not be read")

    async def hostile() -> str:
        return "token\r\nX-Evil: 1"

    for secret in (unreadable, hostile):
        upstream = Upstream(Gateway(stub.url(), secret, ssl.create_default_context()), folder)
        with pytest.raises(TargetBusy) as caught:
            send(upstream, make_request())
        assert "X-Evil" not in str(caught.value)
    assert stub.received == []
    assert "X-Evil" not in caplog.text


def test_nothing_of_a_request_is_logged(stub: StubGateway, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for order in ({}, {"status": 429}, {"cut": "length"}, {"status": 401}):
        try:
            ask(stub, folder, order)
        except (TargetBusy, TargetCut) as error:
            caplog.records.append(logging.makeLogRecord({"msg": str(error)}))
    # Clients of other tests, which end in the meantime, have their say as well.
    records = [one for one in caplog.records if str(one.name).split(".")[0] not in {"botocore", "boto3", "urllib3"}]
    text = "\n".join(one.getMessage() for one in records)
    assert text
    for told in (SECRET, "notebook", "/v1/chat", str(stub.port), "stub"):
        assert told not in text
