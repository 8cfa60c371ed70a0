"""Whoever calls, with a key or with a token: one question, one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sift.identity import Identity
from sift.services.keys import KeyService

if TYPE_CHECKING:
    from sift.services.tokens import TokenService

#: Nothing longer is looked at. An HTTP API takes 10,240 bytes of headers in all.
CREDENTIAL_CHARS = 8_192


class Authenticator:
    """Takes keys, and tokens where the deployment has an identity provider."""

    def __init__(self, keys: KeyService, tokens: TokenService | None = None) -> None:
        self._keys = keys
        self._tokens = tokens

    async def authenticate(self, credential: str | None) -> Identity:
        """Who holds this key or token. Raises Unauthenticated, the same for whatever is wrong with it."""
        if self._tokens is not None and credential is not None:
            from sift.services.tokens import is_token  # here: a deployment without tokens does not load it

            if is_token(credential):
                return await self._tokens.authenticate(credential)
        return await self._keys.authenticate(credential)
