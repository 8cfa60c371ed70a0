"""Requests to a gateway that is not ours: LiteLLM's proxy, in the dialects that it speaks."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from sift.errors import TargetBusy
from sift.gateway import Gateway
from sift.model_requests import UpstreamRequest
from sift.upstream import Upstream
from tests.integration.api.stage import Stage, forget_services
from tests.integration.api.test_inference_function import inference_function, outcomes, submit
from tests.integration.upstream.litellm_proxy import ANSWER, KEY, Proxy, find_missing

_missing = find_missing()
pytestmark = [pytest.mark.skipif(_missing is not None, reason=_missing or ""), pytest.mark.timeout(1_200)]
MESSAGES = [{"role": "user", "content": "How high is the lantern?"}]
PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    running = Proxy(tmp_path_factory.mktemp("litellm"))
    yield running
    running.close()


def ask(proxy: Proxy, path: str, body: dict[str, Any], key: str = KEY) -> tuple[Any, bytes]:
    async def secret() -> str:
        return key

    async def main() -> tuple[Any, bytes]:
        upstream = Upstream(Gateway(proxy.url, secret, ssl.create_default_context()))
        identity = {"tenant": "acme", "actor": "ann", "subject": "Ann Ö.", "application": "notebook"}
        request = UpstreamRequest(path, json.dumps(body).encode(), identity, "job_1/0")
        async with upstream.send(request, PATIENCE_S) as response:
            return response, response.file.read()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("path", "body", "counts"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES}, {"prompt_tokens", "completion_tokens", "total_tokens"}),
        ("/v1/messages", {"messages": MESSAGES, "max_tokens": 20}, {"input_tokens", "output_tokens"}),
        ("/v1/responses", {"input": "How high?"}, {"input_tokens", "output_tokens", "total_tokens"}),
    ],
)
def test_an_answer_with_its_tokens(proxy: Proxy, path: str, body: dict[str, Any], counts: set[str]) -> None:
    response, text = ask(proxy, path, {"model": "small", **body})
    assert (response.status, response.media_type) == (200, "application/json")
    assert ANSWER.encode() in text
    assert response.usage is not None
    assert {name for name in response.usage if name.endswith("tokens")} >= counts
    assert response.request_id, "the proxy's own"


def test_a_stream_with_its_tokens(proxy: Proxy) -> None:
    body = {"model": "small", "stream": True, "stream_options": {"include_usage": True}, "messages": MESSAGES}
    response, text = ask(proxy, "/v1/chat/completions", body)
    assert response.status == 200
    assert response.media_type.startswith("text/event-stream")
    assert text.count(b"data: ") > 2
    assert response.usage is not None
    assert response.usage["total_tokens"] > 0


def test_refusals_are_answers(proxy: Proxy) -> None:
    wrong_key, text = ask(proxy, "/v1/chat/completions", {"model": "small", "messages": MESSAGES}, key="sk-wrong")
    assert wrong_key.status in {400, 401}
    assert b"error" in text
    unknown, text = ask(proxy, "/v1/chat/completions", {"model": "unknown", "messages": MESSAGES})
    assert unknown.status in {400, 404}
    assert json.loads(text)["error"]


def test_a_whole_job_with_a_credential_from_secrets_manager(
    proxy: Proxy, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = stage.deployment.client("secretsmanager").create_secret(Name="gateway", SecretString=f"{KEY}\n")["ARN"]
    monkeypatch.setenv("GATEWAY_URL", proxy.url)
    monkeypatch.setenv("GATEWAY_SECRET", arn)
    forget_services()
    job_id = submit(*({"n": number} for number in range(12)))
    while stage.state(job_id).status != "done":
        assert inference_function(stage) == []
    found = outcomes(stage, job_id)
    assert sorted(found) == list(range(12))
    assert all(ANSWER.encode() in (outcome.content or b"") for outcome in found.values())
    assert len({outcome.document["meta"]["gateway_request_id"] for outcome in found.values()}) == 12


def test_a_limit_of_the_gateway_is_busy(proxy: Proxy) -> None:
    with pytest.raises(TargetBusy) as caught:
        ask(proxy, "/v1/chat/completions", {"model": "limited", "messages": MESSAGES})
    assert caught.value.status == 429
