"""Contract of the store: API keys."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

from sift.identity import Identity, KeyRecord
from sift.store.dynamo import DynamoStore
from sift.store.ports import Store
from tests.contract.conftest import new_table


def key_record(key_id: str, **values: Any) -> KeyRecord:
    identity = Identity("acme", "ann", key_id, ("fetch", "admin:acme"), {"targets_per_job": 9}, **values)
    return KeyRecord(key_id, "00ff", identity, expires_at=1234, created_at=1200)


def test_keys_are_kept_with_their_identity(store: Store) -> None:
    async def story() -> None:
        record = key_record(
            "abc", subject="Ann", application="crawler", allowed_models=("a", "b"), denied_models=("c",),
            caller_class="batch",
        )  # fmt: skip
        await store.put_key(record)
        assert await store.get_key("abc") == record
        forever = dataclasses.replace(record, expires_at=None, identity=key_record("abc").identity)
        await store.put_key(forever)
        assert await store.get_key("abc") == forever
        assert await store.get_key("abd") is None

    asyncio.run(story())


def test_keys_are_listed_and_revoked(store: Store) -> None:
    async def story() -> None:
        assert await store.list_keys() == []
        records = [key_record(f"{number:03d}") for number in range(120)]
        for record in reversed(records):
            await store.put_key(record)
        await store.put_key(records[7])
        assert await store.list_keys() == records
        revoked = dataclasses.replace(records[7], revoked_at=1300)
        assert await store.revoke_key("007", 1300) == revoked
        assert await store.revoke_key("007", 1400) == revoked
        assert await store.get_key("007") == (await store.list_keys())[7] == revoked
        assert await store.revoke_key("abc", 1300) is None
        assert await store.get_key("abc") is None, "revoking makes no key"

    asyncio.run(story())


def test_a_key_of_an_earlier_release_is_read(deployed: Any) -> None:
    table, client = new_table(deployed), deployed.client("dynamodb")
    client.put_item(
        TableName=table,
        Item={
            "pk": {"S": "KEY#abc"}, "sk": {"S": "KEY"}, "v": {"N": "1"}, "secret_sha256": {"S": "00ff"},
            "tenant": {"S": "acme"}, "actor": {"S": "ann"}, "scopes": {"L": [{"S": "fetch"}]}, "limits": {"M": {}},
        },
    )  # fmt: skip
    found = asyncio.run(DynamoStore(client, table).get_key("abc"))
    assert found == KeyRecord("abc", "00ff", Identity("acme", "ann", "abc"))
