"""Whoever calls, with a key or with a token: one question, one answer."""

from __future__ import annotations

from sift.identity import Identity
from sift.services.keys import KeyService
from sift.services.tokens import TOKEN_CHARS, TokenService, is_token

#: Nothing longer is looked at. A key is shorter than any token.
CREDENTIAL_CHARS = TOKEN_CHARS


class Authenticator:
    """Takes keys, and tokens where the deployment has an identity provider."""

    def __init__(self, keys: KeyService, tokens: TokenService | None = None) -> None:
        self._keys = keys
        self._tokens = tokens

    async def authenticate(self, credential: str | None) -> Identity:
        """Who holds this key or token. Raises Unauthenticated, the same for whatever is wrong with it."""
        if self._tokens is not None and credential is not None and is_token(credential):
            return await self._tokens.authenticate(credential)
        return await self._keys.authenticate(credential)
