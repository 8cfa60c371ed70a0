"""The keys of an identity provider: fetched rarely, whatever callers send, and from one address only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from sift.errors import Unavailable
from sift.jwks import FRESH_MS, MOST_BYTES, MOST_KEYS, REFETCH_MS, RETRY_MS, STALE_MS, Jwks, fetch_keys, read_keys
from tests.unit.services import provider
from tests.unit.services.provider import public_jwk
from tests.unit.services.world import FakeClock


class Published:
    """What the provider answers, and how often it was asked."""

    def __init__(self) -> None:
        self.keys = provider.jwks(public_jwk("ES256"))
        self.error: Exception | None = None
        self.asked = 0

    def __call__(self, url: str) -> bytes:
        assert url == "https://login.example/keys"
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.keys


@pytest.fixture
def published() -> Published:
    return Published()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def keys(published: Published, clock: FakeClock) -> Jwks:
    return Jwks("https://login.example/keys", clock, published)


def find(keys: Jwks, key_id: str | None = "ES256", algorithm: str = "ES256") -> str | None:
    found = asyncio.run(keys.find(key_id, algorithm))
    return None if found is None else found["kid"]


def test_keys_are_fetched_once_in_a_while(keys: Jwks, published: Published, clock: FakeClock) -> None:
    for _ in range(5):
        assert find(keys) == "ES256"
    clock.now += FRESH_MS - 1
    assert (find(keys), published.asked) == ("ES256", 1)
    clock.now += 1
    assert (find(keys), published.asked) == ("ES256", 2)


def test_unknown_keys_ask_the_provider_once_a_minute_at_most(
    keys: Jwks, published: Published, clock: FakeClock
) -> None:
    for number in range(50):
        assert find(keys, f"key-{number}") is None
    assert published.asked == 1
    for _ in range(3):
        clock.now += REFETCH_MS
        for number in range(50):
            assert find(keys, f"key-{number}") is None
    assert published.asked == 4


def test_a_new_key_is_found_and_a_withdrawn_one_forgotten(keys: Jwks, published: Published, clock: FakeClock) -> None:
    assert find(keys) == "ES256"
    published.keys = provider.jwks(public_jwk("other"))
    clock.now += REFETCH_MS
    assert find(keys, "other") == "other"
    assert find(keys) is None


def test_keys_outlast_a_provider_that_is_away_for_a_while(keys: Jwks, published: Published, clock: FakeClock) -> None:
    assert find(keys) == "ES256"
    published.error = TimeoutError()
    clock.now += STALE_MS - 1
    assert find(keys) == "ES256"
    clock.now += 1
    with pytest.raises(Unavailable):
        find(keys)
    published.error = None
    clock.now += RETRY_MS
    assert find(keys) == "ES256"


@pytest.mark.parametrize("error", [ConnectionRefusedError(), ValueError("the answer has status 500")])
def test_a_provider_that_never_answered_is_not_asked_all_the_time(
    keys: Jwks, published: Published, clock: FakeClock, error: Exception
) -> None:
    published.error = error
    for _ in range(20):
        with pytest.raises(Unavailable):
            find(keys)
    assert published.asked == 1
    clock.now += RETRY_MS
    with pytest.raises(Unavailable):
        find(keys)
    assert published.asked == 2


def test_a_set_that_is_none_changes_nothing(keys: Jwks, published: Published, clock: FakeClock) -> None:
    assert find(keys) == "ES256"
    for wrong in (b"", b"{", b"[]", b"7", b"{}", b'{"keys": {}}', b"[" * 200_000, b"\xff"):
        published.keys = wrong
        clock.now += FRESH_MS // 4
        assert find(keys, "new") is None
        assert find(keys) == "ES256"
        published.keys = provider.jwks(public_jwk("ES256"))
        clock.now += REFETCH_MS
        assert find(keys, "new") is None


def test_only_keys_are_read() -> None:
    assert read_keys(b'{"keys": [7, null, {"kid": "a"}, []]}') == [{"kid": "a"}]
    assert len(read_keys(json.dumps({"keys": [{}] * 1_000}).encode())) == MOST_KEYS


# the fetch


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    with provider.serve({"/large": b" " * (MOST_BYTES + 1), "/cut": b"{}"}) as served:
        yield served


def test_keys_are_fetched(server: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    address, asked = server
    assert fetch_keys(f"{address}/keys") == provider.jwks()
    assert asked == ["/keys"]


@pytest.mark.parametrize(("path", "word"), [("/moved", "status 302"), ("/none", "status 404"), ("/large", "over")])
def test_what_can_not_be_keys(server: tuple[str, list[str]], path: str, word: str) -> None:
    address, asked = server
    with pytest.raises(ValueError, match=word):
        fetch_keys(address + path)
    assert asked == [path], "no redirect is followed, and nothing is tried again"


def test_an_answer_that_breaks_off(server: tuple[str, list[str]]) -> None:
    with pytest.raises(OSError, match=r"IncompleteRead|ProtocolError"):
        fetch_keys(f"{server[0]}/cut")


def test_nobody_answers() -> None:
    with pytest.raises(OSError, match="NewConnectionError"):
        fetch_keys("http://127.0.0.1:9/keys")
