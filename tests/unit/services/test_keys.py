"""API keys: made once, shown once, and refused without a word about why."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from sift.errors import Unauthenticated
from sift.identity import Identity
from sift.services.keys import CACHE_MS, CACHE_SIZE, KeyService
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


def test_guessing_does_not_fill_the_memory(world: World) -> None:
    async def story() -> None:
        service = KeyService(world.store, world.clock)
        for number in range(CACHE_SIZE * 2 + 1):
            with pytest.raises(Unauthenticated):
                await service.authenticate(f"sift_{number:012x}_{'0' * 64}")
        assert len(service._cache) <= CACHE_SIZE

    asyncio.run(story())


@pytest.mark.parametrize("name", ["", "a/b", "a b", "-a", ".a", "a" * 65, "ü", "a\n", "a#b"])
def test_a_name_that_could_be_read_two_ways_is_refused(world: World, name: str) -> None:
    async def story() -> None:
        for tenant, actor in ((name, "ann"), ("acme", name)):
            with pytest.raises(ValueError, match="not a name"):
                await world.keys.create(tenant=tenant, actor=actor)
        assert world.store.keys == {}

    asyncio.run(story())
