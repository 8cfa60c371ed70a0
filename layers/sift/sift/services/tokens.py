"""Tokens of the user's own identity provider: JWTs, verified with its public keys."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sift.algorithms import ALGORITHMS, Jwk
from sift.claims import identify
from sift.errors import Unauthenticated
from sift.identity import Identity
from sift.services.credentials import CREDENTIAL_CHARS

#: How far the provider's clock may be off, in seconds.
LEEWAY_SECONDS = 10

_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

_log = logging.getLogger(__name__)


class Keys(Protocol):
    """Where the provider's public keys come from."""

    async def find(self, key_id: str | None, algorithm: str) -> Jwk | None: ...


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must say: `issuer` and `audience` exactly. `claims` maps what an identity is made of to the
    names of claims, see `sift.claims`."""

    issuer: str
    audience: str
    claims: Mapping[str, str]


def is_token(credential: str) -> bool:
    """Whether it has the form of a signed JWT."""
    return len(credential) <= CREDENTIAL_CHARS and _TOKEN.fullmatch(credential) is not None


class TokenService:
    """Checks tokens."""

    def __init__(self, rules: TokenRules, keys: Keys) -> None:
        self._rules = rules
        self._keys = keys

    async def authenticate(self, token: str) -> Identity:
        """Who the token is for. Raises Unauthenticated, which never says what was wrong with it, and Unavailable
        when the provider's keys can't be had."""
        import jwt  # with cryptography a few tenths of a second, which only deployments with tokens pay

        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            raise Unauthenticated() from None
        algorithm = header.get("alg")
        # The list is ours: a token can't choose `none`, nor have a public key taken for the secret of an HMAC.
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS or "crit" in header:
            raise Unauthenticated()
        key = await self._keys.find(header.get("kid"), algorithm)
        if key is None:
            raise Unauthenticated()
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                jwt.PyJWK(dict(key), algorithm),
                algorithms=list(ALGORITHMS),
                issuer=self._rules.issuer,
                audience=self._rules.audience,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
            )
        except jwt.PyJWTError as error:
            _log.info("a token is refused: %s", type(error).__name__)
            raise Unauthenticated() from None
        try:
            return identify(claims, self._rules.claims)
        except ValueError as error:
            _log.warning("a token of the identity provider can't be used: %s", error)
            raise Unauthenticated() from None
