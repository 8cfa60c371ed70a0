"""A secret is read when it is needed, kept for a while, and never guessed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sift import settings
from sift.bootstrap import fetching
from sift.content.answers import Answerer
from sift.errors import Unavailable
from sift.gateway import GatewayFailed
from sift.secrets import KEEP_MS, Secret
from tests.unit.domain.test_settings import ALL


class Clock:
    now = 0

    def now_ms(self) -> int:
        return self.now

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody waits here")


class Client:
    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def get_secret_value(self, SecretId: str) -> Any:
        self.asked.append(SecretId)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"SecretString": answer}


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "GetSecretValue")  # type: ignore[typeddict-item]


def test_a_secret_is_kept_for_a_while_and_read_again() -> None:
    clock, client = Clock(), Client("one\n", "two")
    secret = Secret(client, None, "arn:secret", clock)
    assert [asyncio.run(secret.read()), asyncio.run(secret.read())] == ["one", "one"]
    clock.now = KEEP_MS
    assert asyncio.run(secret.read()) == "two"
    assert client.asked == ["arn:secret"] * 2


def test_a_secret_that_cannot_be_read() -> None:
    client = Client(refusal("AccessDeniedException"), refusal("ThrottlingException"), "found")
    secret = Secret(client, None, "arn", Clock())
    with pytest.raises(GatewayFailed, match="secret could not be read"):
        asyncio.run(secret.read())
    with pytest.raises(Unavailable):
        asyncio.run(secret.read())
    assert asyncio.run(secret.read()) == "found"


def test_a_parameter_of_systems_manager_is_read_decrypted() -> None:
    asked = []

    class Parameters:
        def get_parameter(self, Name: str, WithDecryption: bool) -> Any:
            asked.append((Name, WithDecryption))
            return {"Parameter": {"Value": "token\n"}}

    arn = "arn:aws:ssm:eu-west-1:123456789012:parameter/gateway"
    assert asyncio.run(Secret(Client(), Parameters(), arn, Clock()).read()) == "token"
    assert asked == [(arn, True)]


@pytest.mark.parametrize(
    ("model", "url", "there"), [("m", "https://g.example/v1", True), ("", "https://g.example/v1", False)]
)
def test_a_model_is_asked_only_where_one_is_configured(model: str, url: str, there: bool) -> None:
    config = settings.load(settings.FetchSettings, {**ALL, "QUESTION_MODEL": model, "GATEWAY_URL": url})
    assert isinstance(fetching.make_answerer(config), Answerer) == there
