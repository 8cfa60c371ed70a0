"""How the store talks to its table: reads in pages and batches, writes that meet conflicts, transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from sift import aws
from sift.errors import DataUnreadable, Unavailable
from sift.jobs import State
from sift.store import codec, requests
from sift.store.ports import Changed

#: BatchWriteItem takes up to 25 items (DynamoDB API reference, BatchWriteItem).
BATCH = 25
#: BatchGetItem takes up to 100 keys.
READ_BATCH = 100


class Table:
    """`client` is a boto3 DynamoDB client; the table is the one of template.yaml."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    async def _get(self, pair: tuple[str, str]) -> dict[str, Any] | None:
        answer = await aws.call(
            self._client.get_item, TableName=self._table, Key=requests.key(pair), ConsistentRead=True
        )
        return codec.from_wire(answer["Item"]) if "Item" in answer else None

    async def _query(
        self, condition: str, values: Mapping[str, Any], *, consistent: bool, **projection: Any
    ) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        start: dict[str, Any] = {}
        while True:
            page = await aws.call(
                self._client.query,
                TableName=self._table,
                KeyConditionExpression=condition,
                ExpressionAttributeValues=codec.to_wire(values),
                ConsistentRead=consistent,
                **projection,
                **start,
            )
            items += [codec.from_wire(item) for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                return items
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    async def _read_batch(
        self, pairs: Sequence[tuple[str, str]], *, consistent: bool
    ) -> dict[tuple[str, str], dict[str, Any]]:
        """The items of these keys that there are."""
        wanted = [requests.key(pair) for pair in pairs]
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for first in range(0, len(wanted), READ_BATCH):
            part = {"Keys": wanted[first : first + READ_BATCH], "ConsistentRead": consistent}
            left: dict[str, Any] = {self._table: part}
            for wait in aws.conflict_waits():
                answer = await aws.call(self._client.batch_get_item, RequestItems=left)
                for wire in answer["Responses"].get(self._table, []):
                    item = codec.from_wire(wire)
                    found[item["pk"], item["sk"]] = item
                left = answer.get("UnprocessedKeys", {})
                if not left:
                    break
                await asyncio.sleep(wait)
            if left:
                raise Unavailable("The table did not answer for every item.")
        return found

    async def _ids(self, pair: tuple[str, str]) -> Sequence[str]:
        item = await self._get(pair)
        return [] if item is None else sorted(item.get("ids", ()))

    async def _remove(self, pairs: Sequence[tuple[str, str]]) -> None:
        await self._write_batch([{"DeleteRequest": {"Key": requests.key(pair)}} for pair in pairs])

    async def _write_batch(self, writes: Sequence[Mapping[str, Any]]) -> None:
        for first in range(0, len(writes), BATCH):
            left = list(writes[first : first + BATCH])
            for wait in aws.conflict_waits():
                answer = await aws.call(self._client.batch_write_item, RequestItems={self._table: left})
                left = answer.get("UnprocessedItems", {}).get(self._table, [])
                if not left:
                    break
                await asyncio.sleep(wait)
            if left:
                raise Unavailable("The table did not take the whole batch.")

    async def _write(self, operation: Any, request: Mapping[str, Any]) -> Any:
        """A single write; a conflict with a transaction is repeated."""
        repeated = False
        for wait in aws.conflict_waits():
            try:
                return await aws.call(operation, TableName=self._table, **request)
            except ClientError as error:
                if repeated:
                    aws.mark_repeated(error)
                if aws.error_code(error) != "TransactionConflictException":
                    raise
                repeated = aws.was_repeated(error)
                await asyncio.sleep(wait)
        raise Unavailable(f"{operation.__name__}: transaction conflict")

    async def _put_on_condition(self, request: Mapping[str, Any]) -> bool:
        """A put; False when its condition does not hold."""
        try:
            await self._write(self._client.put_item, request)
        except ClientError as error:
            if aws.error_code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True

    async def _change(self, job_id: str, request: Mapping[str, Any]) -> Changed:
        try:
            answer = await self._write(self._client.update_item, {**request, "ReturnValues": "ALL_NEW"})
        except ClientError as error:
            code = aws.error_code(error)
            if code == "ConditionalCheckFailedException":
                return Changed(False, found_state(error.response), aws.was_repeated(error))
            raise
        return Changed(True, codec.state_from(codec.from_wire(answer["Attributes"])))

    async def _transact(self, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
        """None when committed, else the reason of each position; conflicts are repeated."""
        wired = []
        for item in items:
            ((action, request),) = item.items()
            extra = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
            wired.append({action: {**extra, **request, "TableName": self._table}})
        for wait in aws.conflict_waits():
            try:
                await aws.call(self._client.transact_write_items, TransactItems=wired)
            except ClientError as error:
                if aws.error_code(error) != "TransactionCanceledException":
                    raise
                reasons: list[Any] = list(error.response.get("CancellationReasons", []))
                codes = {reason.get("Code") for reason in reasons}
                if "ConditionalCheckFailed" in codes:
                    return reasons
                if "ValidationError" in codes:
                    raise DataUnreadable(f"The table refused the transaction: {sorted(map(str, codes))}") from error
                await asyncio.sleep(wait)
            else:
                return None
        raise Unavailable("transaction conflict")


def found_state(refusal: Any) -> State | None:
    """The state as a refused write saw it."""
    item = refusal.get("Item")
    return codec.state_from(codec.from_wire(item)) if item else None
