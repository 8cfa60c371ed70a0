"""Tokens of an identity provider: who they are for, and every way in which one can be wrong."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import jwt
import pytest

from sift.claims import DEFAULTS, read_names
from sift.errors import Unauthenticated
from sift.identity import Identity
from sift.jwks import Jwks
from sift.services.credentials import CREDENTIAL_CHARS, Authenticator
from sift.services.keys import KeyService
from sift.services.tokens import TokenRules, TokenService
from tests.unit.services import provider
from tests.unit.services.provider import AUDIENCE, ISSUER, public_jwk, token
from tests.unit.services.world import FakeClock, World


def service(names: str = "", keys: bytes = b"") -> TokenService:
    rules = TokenRules(ISSUER, AUDIENCE, read_names(names))
    return TokenService(rules, Jwks("https://login.example/keys", FakeClock(), lambda url: keys or provider.jwks()))


def authenticate(credential: str, names: str = "", keys: bytes = b"") -> Identity:
    return asyncio.run(service(names, keys).authenticate(credential))


@pytest.mark.parametrize("key", ["RS256", "PS384", "ES256", "ES384", "EdDSA"])
def test_a_token_of_each_kind(key: str) -> None:
    assert authenticate(token(key)) == Identity("acme", "ann", None, ("fetch",), subject="ann", auth_type="jwt")


def test_everything_that_a_token_can_say() -> None:
    said = token(
        scope="openid sift:fetch sift/admin:acme fetch", azp="crawler", sift_class="batch", aud=["x", AUDIENCE]
    )
    assert authenticate(said) == Identity(
        "acme", "ann", None, ("fetch", "admin:acme"), subject="ann", application="crawler", auth_type="jwt",
        caller_class="batch",
    )  # fmt: skip


def test_claims_have_the_names_that_the_deployment_sets() -> None:
    names = "tenant=https://example.com/org, actor=email,scopes=permissions,application=cid,class='batch'"
    said = token(
        tenant=None, scope=None, permissions=["sift.fetch", "sift.inference", 7, "billing"], cid="app",
        email="ann@example.com", **{"https://example.com/org": "globex"},
    )  # fmt: skip
    assert authenticate(said, names) == Identity(
        "globex", "ann@example.com", None, ("fetch", "inference"), subject="ann", application="app", auth_type="jwt",
        caller_class="batch",
    )  # fmt: skip


def test_a_constant_takes_the_place_of_a_claim() -> None:
    assert authenticate(token(tenant="other", sub="auth0|7"), "tenant='acme'").caller == "acme/auth0|7"


@pytest.mark.parametrize("scope", [None, "", "openid", 7, {"fetch": True}, "Fetch", "sift:fetch:acme", "admin:"])
def test_a_token_may_be_good_and_for_nothing_here(scope: Any) -> None:
    assert authenticate(token(scope=scope)).scopes == ()


def test_the_clocks_of_both_may_differ_a_little() -> None:
    now = int(time.time())
    assert authenticate(token(exp=now - 2, nbf=now + 2)).actor == "ann"


@pytest.mark.parametrize("what", provider.wrong_tokens())
def test_a_wrong_token(what: str, world: World) -> None:
    wrong = provider.wrong_tokens()[what]
    door = Authenticator(KeyService(world.store, world.clock), service())
    with pytest.raises(Unauthenticated) as caught:
        asyncio.run(door.authenticate(wrong))
    told = (caught.value.code, caught.value.detail, caught.value.hint)
    assert told == (Unauthenticated().code, Unauthenticated().detail, Unauthenticated().hint)


def test_the_tokens_are_refused_for_what_is_said_of_them() -> None:
    """The same ones without their fault are taken: the tests above would pass for a service that takes nothing."""
    assert len(provider.wrong_tokens()) == len(set(provider.wrong_tokens().values()))
    assert len(token(filler="x" * 5_000)) < CREDENTIAL_CHARS < len(provider.wrong_tokens()["oversized"])
    assert authenticate(token(filler="x" * 5_000)).actor == "ann"
    assert authenticate(token("other"), keys=provider.jwks(public_jwk("other"))).actor == "ann"
    assert authenticate(token(header={"kid": ""}), keys=provider.jwks(public_jwk("ES256", kid=""))).actor == "ann"


@pytest.mark.parametrize(
    "change",
    [
        {"use": "enc"}, {"alg": "RS384"}, {"kty": "EC"}, {"n": "AQAB"}, {"n": 7}, {"e": None}, {"kid": None},
        {"kty": "oct", "k": "c2VjcmV0"},
    ],
)  # fmt: skip
def test_a_published_key_that_can_not_have_signed_it(change: dict[str, Any]) -> None:
    assert authenticate(token("RS256"), keys=provider.jwks(public_jwk("RS256"))).actor == "ann"
    with pytest.raises(Unauthenticated):
        authenticate(token("RS256"), keys=provider.jwks(public_jwk("RS256", **change)))


def test_a_key_that_is_too_short() -> None:
    with pytest.raises(Unauthenticated):
        authenticate(short_token(), keys=provider.jwks(public_jwk("short")))


def short_token() -> str:
    with pytest.warns(match="below the minimum"):
        return token("short")


def test_a_key_without_an_algorithm_serves_those_of_its_kind() -> None:
    keys = provider.jwks({name: value for name, value in public_jwk("RS256").items() if name not in {"alg", "use"}})
    for algorithm in ("RS256", "RS512", "PS256"):
        assert authenticate(token("RS256", algorithm=algorithm), keys=keys).actor == "ann"


def test_without_a_key_id_the_only_key_that_fits_is_taken() -> None:
    keys = provider.jwks(public_jwk("ES256"), public_jwk("RS256"))
    said = jwt.encode(provider.claims(), provider.private_key("ES256"), "ES256")
    assert authenticate(said, keys=keys).actor == "ann"
    with pytest.raises(Unauthenticated):
        authenticate(said, keys=provider.jwks(public_jwk("ES256"), public_jwk("other")))


def test_keys_are_taken_beside_tokens_and_tokens_only_with_a_provider(world: World) -> None:
    async def story() -> None:
        key = await world.keys.create(tenant="acme", actor="bob")
        with_provider, without = Authenticator(world.keys, service()), Authenticator(world.keys)
        assert (await with_provider.authenticate(key)).caller == (await without.authenticate(key)).caller == "acme/bob"
        assert (await with_provider.authenticate(token())).caller == "acme/ann"
        for door, credential in ((without, token()), (with_provider, None), (without, None), (with_provider, "")):
            with pytest.raises(Unauthenticated):
                await door.authenticate(credential)

    asyncio.run(story())


def test_an_unlisted_claim_has_its_default_name() -> None:
    assert read_names("") == DEFAULTS
    assert read_names(" tenant=org , ") == {**DEFAULTS, "tenant": "org"}


@pytest.mark.parametrize("text", ["tenant", "tenant=", "=org", "owner=org", "tenant:org", "Tenant=org"])
def test_claim_names_that_can_not_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="is not one of"):
        read_names(text)


def test_a_deployment_without_tokens_does_not_pay_for_them() -> None:
    """The API function's cold start is all imports."""
    lines = (
        "import sys, sift.bootstrap.callers, sift.api.application; print({'jwt', 'cryptography'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True, timeout=240)
    assert ran.stdout == "set()\n"
