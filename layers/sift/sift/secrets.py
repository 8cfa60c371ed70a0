"""A secret of Secrets Manager as text, read when it is first needed and again now and then."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from sift import aws
from sift.clock import Clock
from sift.gateway import GatewayFailed

#: How long a secret is used before it is read again (ms): it may be replaced while an environment lives.
KEEP_MS = 300_000


class Secret:
    """`client` is a boto3 Secrets Manager client."""

    def __init__(self, client: Any, arn: str, clock: Clock) -> None:
        self._client = client
        self._arn = arn
        self._clock = clock
        self._text = ""
        self._until = 0

    async def read(self) -> str:
        """The secret's text. Raises Unavailable, and GatewayFailed when this function may not read it."""
        now = self._clock.now_ms()
        if now >= self._until:
            try:
                answer = await aws.call(self._client.get_secret_value, SecretId=self._arn)
            except ClientError as error:
                raise GatewayFailed("its secret could not be read") from error
            self._text, self._until = str(answer.get("SecretString", "")).strip(), now + KEEP_MS
        return self._text
