"""The table on DynamoDB."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from botocore.exceptions import ClientError

from sift import aws
from sift.errors import DataUnreadable, Unavailable
from sift.identity import KeyRecord
from sift.jobs import SEGMENT, Flight, Meta, State, Status
from sift.store import codec, keys, requests
from sift.store.ports import (
    CapReached,
    Changed,
    CommitResult,
    Committed,
    Duplicate,
    Idempotency,
    Outcome,
    Segment,
    Submission,
)

#: BatchWriteItem takes up to 25 items (DynamoDB API reference, BatchWriteItem).
BATCH = 25
#: BatchGetItem takes up to 100 keys.
READ_BATCH = 100


class DynamoStore:
    """`client` is a boto3 DynamoDB client; the table is the one of template.yaml."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    # submit

    async def get_idempotency(self, key: str) -> Idempotency | None:
        item = await self._get(keys.idempotency(key))
        return None if item is None else codec.idempotency_from(item)

    async def count_jobs(self, caller: str, now_ms: int, enough: int) -> int:
        count: int = 0
        start: dict[str, Any] = {}
        while True:
            page = await aws.call(
                self._client.query,
                TableName=self._table,
                Select="COUNT",
                KeyConditionExpression="pk = :pk AND begins_with(sk, :job)",
                FilterExpression="attribute_not_exists(expires_at) OR expires_at > :now",
                ExpressionAttributeValues=codec.to_wire(
                    {":pk": keys.caller_job(caller, "")[0], ":job": "JOB#", ":now": now_ms // 1000}
                ),
                **start,
            )
            count += int(page["Count"])
            if count >= enough or "LastEvaluatedKey" not in page:
                return count
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    async def put_segments(self, job_id: str, segments: Sequence[Segment], expires_at: int | None) -> None:
        await self._write_batch(
            [
                {"PutRequest": requests.put(keys.segment(job_id, s.number), codec.segment_item(s, expires_at))}
                for s in segments
            ]
        )

    async def commit(self, submission: Submission, now_ms: int) -> CommitResult:
        meta, state, record = submission.meta, submission.state, submission.idempotency
        job_id = meta.job_id
        transact: list[dict[str, Any]] = []
        if record is not None:
            request = requests.put(keys.idempotency(record.key), codec.idempotency_item(record))
            request["ConditionExpression"] = "attribute_not_exists(pk) OR expires_at <= :now"
            values: dict[str, Any] = {":now": now_ms // 1000}
            if submission.stale_job is not None:
                request["ConditionExpression"] += " OR job_id = :stale"
                values |= {":stale": submission.stale_job}
            request["ExpressionAttributeValues"] = codec.to_wire(values)
            transact.append({"Put": request})
        new_job = requests.put(keys.meta(job_id), codec.meta_item(meta))
        new_job["ConditionExpression"] = "attribute_not_exists(pk)"
        transact += [
            {"Put": new_job},
            {"Update": requests.add_id(keys.caller_live(meta.caller), job_id, submission.caller_cap)},
            {"Update": requests.add_id(keys.live(meta.shard), job_id, submission.shard_cap)},
            {"Put": requests.put(keys.state(job_id), codec.state_item(state))},
            {
                "Put": requests.put(
                    keys.caller_job(meta.caller, job_id),
                    {"v": codec.VERSION, "kind": meta.kind, "expires_at": meta.expires_at},
                )
            },
        ]
        transact += [
            {"Put": requests.put(keys.segment(job_id, s.number), codec.segment_item(s, meta.expires_at))}
            for s in submission.segments
        ]
        reasons = await self._transact(transact)
        if reasons is None:
            return Committed()
        if record is not None:
            reason = reasons.pop(0)
            if reason.get("Code") == "ConditionalCheckFailed":
                held = codec.idempotency_from(codec.from_wire(reason["Item"]))
                # Held by this very job: the answer to an earlier try of this commit was lost.
                return Committed() if held.job_id == job_id else Duplicate(held)
        exists, caller, shard = (reason.get("Code") == "ConditionalCheckFailed" for reason in reasons[:3])
        if exists:
            return Committed()
        if caller:
            return CapReached("caller")
        if shard:
            return CapReached("shard")
        raise Unavailable(f"commit: {[reason.get('Code') for reason in reasons]}")

    # read

    async def get_job(self, job_id: str) -> tuple[Meta, State] | None:
        items = await self._query(
            "pk = :pk", {":pk": keys.meta(job_id)[0]}, consistent=True
        )  # META and STATE share the key
        found = {item["sk"]: item for item in items}
        if "META" not in found or "STATE" not in found:
            return None
        return codec.meta_from(found["META"]), codec.state_from(found["STATE"])

    async def get_jobs(self, job_ids: Sequence[str]) -> Sequence[tuple[Meta, State]]:
        pairs = [pair for job_id in job_ids for pair in (keys.meta(job_id), keys.state(job_id))]
        found = await self._read_batch(pairs, consistent=True)
        jobs = []
        for job_id in job_ids:
            meta, state = found.get(keys.meta(job_id)), found.get(keys.state(job_id))
            if meta is not None and state is not None:
                jobs.append((codec.meta_from(meta), codec.state_from(state)))
        return jobs

    async def get_meta(self, job_id: str) -> Meta | None:
        item = await self._get(keys.meta(job_id))
        return None if item is None else codec.meta_from(item)

    async def get_state(self, job_id: str) -> State | None:
        item = await self._get(keys.state(job_id))
        return None if item is None else codec.state_from(item)

    async def get_segment(self, job_id: str, number: int) -> Segment | None:
        item = await self._get(keys.segment(job_id, number))
        return None if item is None else codec.segment_from(item)

    async def get_segment_outcomes(
        self, job_id: str, number: int, first: int, last: int, *, content: bool = True
    ) -> Mapping[int, Outcome]:
        low, high = keys.outcome(job_id, first), keys.outcome(job_id, last)
        items = await self._query(
            "pk = :pk AND sk BETWEEN :low AND :high",
            {":pk": keys.outcome(job_id, number * SEGMENT)[0], ":low": low[1], ":high": high[1]},
            consistent=True,
            **({} if content else codec.OUTCOME_WITHOUT_CONTENT),
        )
        outcomes = [codec.outcome_from(item) for item in items]
        return {outcome.index: outcome for outcome in outcomes}

    async def list_jobs(
        self, caller: str, now_ms: int, before: str | None, limit: int
    ) -> tuple[Sequence[str], str | None]:
        pk, prefix = keys.caller_job(caller, "")
        start = {} if before is None else {"ExclusiveStartKey": requests.key(keys.caller_job(caller, before))}
        page = await aws.call(
            self._client.query,
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND begins_with(sk, :job)",
            FilterExpression="attribute_not_exists(expires_at) OR expires_at > :now",
            ExpressionAttributeValues=codec.to_wire({":pk": pk, ":job": prefix, ":now": now_ms // 1000}),
            ScanIndexForward=False,
            Limit=limit,
            **start,
        )
        found = [codec.from_wire(item)["sk"].removeprefix(prefix) for item in page["Items"]]
        last = page.get("LastEvaluatedKey")
        return found, None if last is None else last["sk"]["S"].removeprefix(prefix)

    # one target

    async def claim(self, job_id: str, index: int, lease: int, now_ms: int) -> Changed:
        return await self._change(job_id, requests.claim(job_id, index, lease, now_ms))

    async def put_outcome(self, job_id: str, outcome: Outcome, expires_at: int | None) -> bool:
        request = requests.put(keys.outcome(job_id, outcome.index), codec.outcome_item(outcome, expires_at))
        request["ConditionExpression"] = "attribute_not_exists(pk) OR lease <= :mine"
        request["ExpressionAttributeValues"] = codec.to_wire({":mine": outcome.lease})
        try:
            await self._write(self._client.put_item, request)
        except ClientError as error:
            if aws.error_code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True

    async def finish(
        self, job_id: str, index: int, lease: int, status: Literal["done", "failed"], size: int
    ) -> Changed:
        return await self._change(job_id, requests.finish(job_id, index, lease, status, size))

    async def hand_back(self, job_id: str, index: int, lease: int, until: int, busy_since: int | None) -> Changed:
        return await self._change(job_id, requests.hand_back(job_id, index, lease, until, busy_since))

    # the window

    async def release(self, job_id: str, first: int, count: int, until: int) -> Changed:
        return await self._change(job_id, requests.release(job_id, first, count, until))

    async def touch(self, job_id: str, entries: Mapping[int, Flight], until: int) -> Changed:
        return await self._change(job_id, requests.touch(job_id, entries, until))

    # the job

    async def pause(self, job_id: str, status: Literal["pausing", "paused"], now_ms: int) -> Changed:
        return await self._change(job_id, requests.pause(job_id, status, now_ms))

    async def end_pause(self, job_id: str, pausing_at: int) -> Changed:
        return await self._change(job_id, requests.end_pause(job_id, pausing_at))

    async def resume(self, job_id: str) -> Changed:
        return await self._change(job_id, requests.resume(job_id))

    async def settle(
        self, meta: Meta, seen: State, status: Status, error: str | None, now_ms: int, expires_at: int | None
    ) -> Changed:
        job_id = meta.job_id
        reasons = await self._transact(
            [
                {"Update": requests.settle(seen, status, error, now_ms, expires_at)},
                {"Update": requests.remove_id(keys.caller_live(meta.caller), job_id)},
                {"Update": requests.remove_id(keys.live(meta.shard), job_id)},
                {"Update": requests.add_id(keys.outbox(meta.shard), job_id)},
                {"Update": requests.keep_listed(keys.caller_job(meta.caller, job_id), expires_at)},
            ]
        )
        if reasons is None:
            return Changed(True, None)
        if reasons[0].get("Code") != "ConditionalCheckFailed":
            raise Unavailable(f"settle: {[reason.get('Code') for reason in reasons]}")
        return Changed(False, _found(reasons[0]))

    # after the end, and the sweeper

    async def drop_idempotency(self, key: str, job_id: str) -> None:
        request = {
            "Key": requests.key(keys.idempotency(key)),
            "ConditionExpression": "job_id = :mine",
            "ExpressionAttributeValues": codec.to_wire({":mine": job_id}),
        }
        try:
            await self._write(self._client.delete_item, request)
        except ClientError as error:
            if aws.error_code(error) != "ConditionalCheckFailedException":
                raise

    async def used_shards(self, count: int) -> Sequence[int]:
        of_shard = {shard: (keys.live(shard), keys.outbox(shard), keys.removals(shard)) for shard in range(count)}
        # Half the price: what is too new to be seen is seen a minute later.
        found = await self._read_batch([pair for pairs in of_shard.values() for pair in pairs], consistent=False)
        return [shard for shard, pairs in of_shard.items() if any(found.get(pair, {}).get("ids") for pair in pairs)]

    async def live_jobs(self, shard: int) -> Sequence[str]:
        return await self._ids(keys.live(shard))

    async def outbox(self, shard: int) -> Sequence[str]:
        return await self._ids(keys.outbox(shard))

    async def leave_outbox(self, shard: int, job_id: str) -> None:
        await self._write(self._client.update_item, requests.remove_id(keys.outbox(shard), job_id))

    async def hide(self, meta: Meta, now_ms: int) -> Changed:
        listed = {"Key": requests.key(keys.caller_job(meta.caller, meta.job_id))}
        reasons = await self._transact(
            [
                {"Update": requests.hide(meta.job_id, now_ms)},
                {"Update": requests.add_id(keys.removals(meta.shard), meta.job_id)},
                {"Delete": listed},
            ]
        )
        return Changed(True, None) if reasons is None else Changed(False, _found(reasons[0]))

    async def removals(self, shard: int) -> Sequence[str]:
        return await self._ids(keys.removals(shard))

    async def remove_segment(self, job_id: str, number: int) -> None:
        pk = keys.segment(job_id, number)[0]
        items = await self._query("pk = :pk", {":pk": pk}, consistent=True)
        await self._remove([(item["pk"], item["sk"]) for item in items])

    async def remove_job(self, job_id: str) -> None:
        await self._remove([keys.meta(job_id), keys.state(job_id)])

    async def leave_removals(self, shard: int, job_id: str) -> None:
        await self._write(self._client.update_item, requests.remove_id(keys.removals(shard), job_id))

    async def caller_live(self, caller: str) -> Sequence[str]:
        return await self._ids(keys.caller_live(caller))

    async def forget_live(self, job_id: str, *, caller: str | None = None, shard: int | None = None) -> None:
        if shard is not None:
            await self._write(self._client.update_item, requests.remove_id(keys.live(shard), job_id))
        if caller is not None:
            await self._write(self._client.update_item, requests.remove_id(keys.caller_live(caller), job_id))

    # keys

    async def get_key(self, key_id: str) -> KeyRecord | None:
        item = await self._get(keys.api_key(key_id))
        return None if item is None else codec.key_from(item)

    async def put_key(self, record: KeyRecord) -> None:
        await self._write(self._client.put_item, requests.put(keys.api_key(record.key_id), codec.key_item(record)))

    # how

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

    async def _change(self, job_id: str, request: Mapping[str, Any]) -> Changed:
        try:
            answer = await self._write(self._client.update_item, {**request, "ReturnValues": "ALL_NEW"})
        except ClientError as error:
            code = aws.error_code(error)
            if code == "ConditionalCheckFailedException":
                return Changed(False, _found(error.response), aws.was_repeated(error))
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
                    raise DataUnreadable(f"The table refused the transaction: {reasons}") from error
                await asyncio.sleep(wait)
            else:
                return None
        raise Unavailable("transaction conflict")


def _found(refusal: Any) -> State | None:
    """The state as a refused write saw it."""
    item = refusal.get("Item")
    return codec.state_from(codec.from_wire(item)) if item else None
