"""The keys of an identity provider: fetched rarely, whatever callers send, and from one address only."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sift import jwks as module
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


class Provider(BaseHTTPRequestHandler):
    """Answers by path; `seen` are the requests."""

    seen: list[tuple[str, dict[str, str]]] = []  # noqa: RUF012 - one server at a time

    def do_GET(self) -> None:
        self.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/keys")
            self.end_headers()
            return
        body = {"/keys": provider.jwks(), "/large": b" " * (MOST_BYTES + 1), "/cut": b"{}"}.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"") + (self.path == "/cut")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written."""


@pytest.fixture
def address() -> Iterator[str]:
    Provider.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_keys_are_fetched(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert fetch_keys(f"{address}/keys") == provider.jwks()
    ((path, headers),) = Provider.seen
    assert (path, headers["accept-encoding"]) == ("/keys", "identity")
    assert not {"authorization", "cookie"} & set(headers)


@pytest.mark.parametrize(("path", "word"), [("/moved", "status 302"), ("/none", "status 404"), ("/large", "over")])
def test_what_can_not_be_keys(address: str, path: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        fetch_keys(address + path)
    assert [seen for seen, _ in Provider.seen] == [path], "no redirect is followed, and nothing is tried again"


def test_an_answer_that_breaks_off(address: str) -> None:
    with pytest.raises(OSError, match=r"IncompleteRead|ProtocolError"):
        fetch_keys(f"{address}/cut")


def test_nobody_answers() -> None:
    with pytest.raises(OSError, match="NewConnectionError"):
        fetch_keys("http://127.0.0.1:9/keys")


def test_an_answer_that_takes_too_long(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 1e-9)
    with pytest.raises((OSError, ValueError)):
        fetch_keys(f"{address}/keys")
