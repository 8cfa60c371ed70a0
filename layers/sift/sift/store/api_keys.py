"""The part of the table that holds API keys."""

from __future__ import annotations

from collections.abc import Sequence

from botocore.exceptions import ClientError

from sift import aws
from sift.identity import KeyRecord
from sift.store import codec, keys, requests
from sift.store.table import Table


class KeyTable(Table):
    """One item per key, and one that lists it."""

    async def get_key(self, key_id: str) -> KeyRecord | None:
        item = await self._get(keys.api_key(key_id))
        return None if item is None else codec.key_from(item)

    async def put_key(self, record: KeyRecord) -> None:
        listed = {"v": codec.VERSION, "expires_at": record.expires_at}
        await self._transact(
            [
                {"Put": requests.put(keys.api_key(record.key_id), codec.key_item(record))},
                {"Put": requests.put(keys.listed_key(record.key_id), listed)},
            ]
        )

    async def list_keys(self) -> Sequence[KeyRecord]:
        pk, prefix = keys.listed_key("")
        listed = await self._query("pk = :pk", {":pk": pk}, consistent=True)
        pairs = [keys.api_key(item["sk"].removeprefix(prefix)) for item in listed]
        found = await self._read_batch(pairs, consistent=True)
        return [codec.key_from(found[pair]) for pair in pairs if pair in found]

    async def revoke_key(self, key_id: str, at: int) -> KeyRecord | None:
        try:
            answer = await self._write(self._client.update_item, requests.revoke_key(keys.api_key(key_id), at))
        except ClientError as error:
            if aws.error_code(error) == "ConditionalCheckFailedException":
                return None
            raise
        return codec.key_from(codec.from_wire(answer["Attributes"]))
