"""A secret as text, from Secrets Manager or a parameter of Systems Manager, read when needed and again now and then."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from sift import aws
from sift.clock import Clock
from sift.gateway import GatewayFailed

#: How long a secret is used before it is read again (ms): it may be replaced while an environment lives.
KEEP_MS = 300_000


class Secret:
    """The secret that an ARN names: of Secrets Manager, or of a SecureString of Systems Manager (`arn:*:ssm:...`).

    `secrets_manager` and `parameters` are boto3 clients of the two; the one that the ARN is of is called.
    """

    def __init__(self, secrets_manager: Any, parameters: Any, arn: str, clock: Clock) -> None:
        self._secrets_manager = secrets_manager
        self._parameters = parameters
        self._arn = arn
        self._clock = clock
        self._text = ""
        self._until = 0

    async def read(self) -> str:
        """The secret's text. Raises Unavailable, and GatewayFailed when this function may not read it."""
        now = self._clock.now_ms()
        if now >= self._until:
            try:
                text = await self._fetch()
            except ClientError as error:
                raise GatewayFailed("its secret could not be read") from error
            self._text, self._until = text.strip(), now + KEEP_MS
        return self._text

    async def _fetch(self) -> str:
        if self._arn.split(":")[2:3] == ["ssm"]:
            found = await aws.call(self._parameters.get_parameter, Name=self._arn, WithDecryption=True)
            return str(found["Parameter"]["Value"])
        found = await aws.call(self._secrets_manager.get_secret_value, SecretId=self._arn)
        return str(found.get("SecretString", ""))
