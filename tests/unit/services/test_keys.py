"""API keys: made once, shown once, and refused without a word about why."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from typing import Any

import pytest

from sift.clock import rfc3339
from sift.errors import Unauthenticated
from sift.identity import Identity
from sift.services.keys import CACHE_MS, CACHE_SIZE, LAST_SECOND, KeyService
from tests.unit.services.world import NOW, World


def test_a_key_stands_for_its_identity(world: World) -> None:
    async def story() -> None:
        key = await world.keys.create(tenant="acme", actor="ann", scopes=["fetch"], limits={"targets_per_job": 9})
        key_id = key.split("_")[1]
        expected = Identity("acme", "ann", key_id, ("fetch",), {"targets_per_job": 9})
        assert await world.keys.authenticate(key) == expected

    asyncio.run(story())


def test_the_secret_is_kept_nowhere(world: World) -> None:
    async def story() -> None:
        key = await world.keys.create(tenant="acme", actor="ann")
        secret = key.split("_")[2]
        (record,) = world.store.keys.values()
        assert record.secret_sha256 == hashlib.sha256(secret.encode()).hexdigest()
        assert secret not in repr(record)

    asyncio.run(story())


def test_keys_are_never_the_same(world: World) -> None:
    async def story() -> None:
        keys = {await world.keys.create(tenant="acme", actor="ann") for _ in range(100)}
        assert len(keys) == len(world.store.keys) == 100

    asyncio.run(story())


def test_whatever_is_wrong_the_answer_is_the_same(world: World) -> None:
    async def story() -> None:
        key = await world.keys.create(tenant="acme", actor="ann")
        old = await world.keys.create(tenant="acme", actor="ann", expires_at=NOW // 1000)
        _, key_id, secret = key.split("_")
        zero = "\uff10"  # a digit to some, and not to a key
        wrong: list[str | None] = [
            None, "", "sift", "sift__", f"sift_{key_id}", f"sift_{key_id}_", f"sift_{key_id}_{secret[:-1]}",
            f"sift_{key_id}_{secret}0", f"sift_{key_id}_{'0' * 64}", f"sift_{'0' * 12}_{secret}", key.upper(),
            f" {key}", f"{key}\n", f"{key} {key}", f"SIFT_{key_id}_{secret}", f"sift-{key_id}-{secret}",
            f"sift_{key_id}_{zero * 64}", "x" * 500, "\x00", old,
        ]  # fmt: skip
        answers = set()
        for credential in wrong:
            with pytest.raises(Unauthenticated) as caught:
                await world.keys.authenticate(credential)
            answers.add((caught.value.code, caught.value.detail, caught.value.hint))
        assert len(answers) == 1

    asyncio.run(story())


def test_a_key_expires(world: World) -> None:
    async def story() -> None:
        key = await world.keys.create(tenant="acme", actor="ann", expires_at=NOW // 1000 + 5)
        world.clock.now = NOW + 4_999
        await world.keys.authenticate(key)
        world.clock.now = NOW + 5_000
        with pytest.raises(Unauthenticated):
            await world.keys.authenticate(key)

    asyncio.run(story())


def test_a_time_that_no_date_can_say_is_no_end_of_a_key(world: World) -> None:
    async def story() -> None:
        for expires_at in (-1, LAST_SECOND + 1, 10**30):
            with pytest.raises(ValueError, match="expires_at"):
                await world.keys.create(tenant="acme", actor="ann", expires_at=expires_at)
        assert world.store.keys == {}
        await world.keys.create(tenant="acme", actor="ann", expires_at=LAST_SECOND)
        assert rfc3339(LAST_SECOND * 1000) == "9999-12-31T23:59:59.000Z"

    asyncio.run(story())


def test_a_key_is_looked_up_once_in_a_while(world: World) -> None:
    async def story() -> None:
        key = await world.keys.create(tenant="acme", actor="ann")
        life = world.restart()
        for _ in range(5):
            await world.keys.authenticate(key)
        assert life.calls == ["store.get_key"]
        world.store.keys.clear()  # revoked
        world.clock.now += CACHE_MS - 1
        await world.keys.authenticate(key)
        world.clock.now += 1
        with pytest.raises(Unauthenticated):
            await world.keys.authenticate(key)

    asyncio.run(story())


def test_a_revoked_key_is_refused_when_its_time_in_memory_is_over(world: World) -> None:
    async def story() -> None:
        key = await world.keys.create(tenant="acme", actor="ann")
        key_id = key.split("_")[1]
        await world.keys.authenticate(key)
        revoked = await KeyService(world.store, world.clock).revoke(key_id)
        assert revoked is not None
        assert revoked.revoked_at == NOW // 1000
        world.clock.now += CACHE_MS
        with pytest.raises(Unauthenticated):
            await world.keys.authenticate(key)
        assert await world.keys.revoke(key_id) == revoked, "the first time stays"
        assert await world.keys.revoke("0" * 12) is None
        assert await world.keys.revoke("no id") is None

    asyncio.run(story())


def test_a_revocation_is_felt_within_a_minute() -> None:
    assert CACHE_MS <= 60_000


@pytest.mark.parametrize("known", [True, False], ids=["a wrong secret", "an unknown key"])
def test_an_unknown_key_runs_the_comparison_of_a_wrong_secret(
    world: World, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    compared: list[tuple[str, str]] = []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return hmac_compare(one, other)

    hmac_compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", compare)

    async def story() -> None:
        key = await world.keys.create(tenant="acme", actor="ann")
        key_id = key.split("_")[1] if known else "0" * 12
        life = world.restart()
        with pytest.raises(Unauthenticated):
            await world.keys.authenticate(f"sift_{key_id}_{'1' * 64}")
        assert life.calls == ["store.get_key"]

    asyncio.run(story())
    ((given, held),) = compared
    assert given == hashlib.sha256(b"1" * 64).hexdigest()
    assert len(held) == len(given)


def test_keys_are_listed_newest_first(world: World) -> None:
    async def story() -> None:
        keys = []
        for _ in range(3):
            keys.append(await world.keys.create(tenant="acme", actor="ann"))
            world.clock.now += 1_000
        listed = await world.keys.list()
        assert [record.key_id for record in listed] == [key.split("_")[1] for key in reversed(keys)]
        assert await world.keys.find(listed[0].key_id) == listed[0]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"scopes": []}, "not scopes"), ({"scopes": ["fetch", "all"]}, "not scopes"),
        ({"scopes": ["admin:"]}, "not scopes"), ({"scopes": ["admin:a/b"]}, "not scopes"),
        ({"limits": {"speed": 9}}, "no limit is called speed"),
        ({"limits": {"window": 0}}, "window is a number"), ({"caller_class": ""}, "not a name"),
    ],
)  # fmt: skip
def test_a_key_that_means_nothing_is_not_made(world: World, wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        asyncio.run(world.keys.create(tenant="acme", actor="ann", **wrong))
    assert world.store.keys == {}


def test_guessing_does_not_fill_the_memory(world: World) -> None:
    async def story() -> None:
        service = KeyService(world.store, world.clock)
        for number in range(CACHE_SIZE * 2 + 1):
            with pytest.raises(Unauthenticated):
                await service.authenticate(f"sift_{number:012x}_{'0' * 64}")
        assert len(service._cache) <= CACHE_SIZE

    asyncio.run(story())


@pytest.mark.parametrize("name", ["", "a/b", "a b", "-a", ".a", "a" * 129, "ü", "a\n", "a#b"])
def test_a_name_that_could_be_read_two_ways_is_refused(world: World, name: str) -> None:
    async def story() -> None:
        for tenant, actor in ((name, "ann"), ("acme", name)):
            with pytest.raises(ValueError, match="not a name"):
                await world.keys.create(tenant=tenant, actor=actor)
        assert world.store.keys == {}

    asyncio.run(story())
