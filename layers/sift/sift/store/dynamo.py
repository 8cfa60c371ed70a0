"""The table on DynamoDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from botocore.exceptions import ClientError

from sift import aws
from sift.errors import Unavailable
from sift.jobs import SEGMENT, Flight, Meta, State, Status
from sift.store import codec, keys, requests
from sift.store.api_keys import KeyTable
from sift.store.assemblies import AssemblyTable
from sift.store.hosts import HostTable
from sift.store.lists import ListTable
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
from sift.store.table import found_state
from sift.store.webhooks import WebhookTable


class DynamoStore(AssemblyTable, HostTable, ListTable, WebhookTable, KeyTable):
    """`client` is a boto3 DynamoDB client; the table is the one of template.yaml."""

    # submit

    async def get_idempotency(self, key: str) -> Idempotency | None:
        item = await self._get(keys.idempotency(key))
        return None if item is None else codec.idempotency_from(item)

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
            {
                "Put": requests.put(
                    keys.all_jobs(job_id),
                    {"v": codec.VERSION, "tenant": meta.caller.partition("/")[0], "expires_at": meta.expires_at},
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

    # one target

    async def claim(self, job_id: str, index: int, lease: int, now_ms: int) -> Changed:
        return await self._change(job_id, requests.claim(job_id, index, lease, now_ms))

    async def put_outcome(self, job_id: str, outcome: Outcome, expires_at: int | None) -> bool:
        request = requests.put(keys.outcome(job_id, outcome.index), codec.outcome_item(outcome, expires_at))
        request["ConditionExpression"] = "attribute_not_exists(pk) OR lease <= :mine"
        request["ExpressionAttributeValues"] = codec.to_wire({":mine": outcome.lease})
        return await self._put_on_condition(request)

    async def finish(
        self, job_id: str, index: int, lease: int, status: Literal["done", "failed"], size: int
    ) -> Changed:
        return await self._change(job_id, requests.finish(job_id, index, lease, status, size))

    async def hand_back(self, job_id: str, index: int, lease: int, until: int, busy_since: int | None) -> Changed:
        return await self._change(job_id, requests.hand_back(job_id, index, lease, until, busy_since))

    async def abandon(self, job_id: str, index: int, lease: int, until: int) -> Changed:
        return await self._change(job_id, requests.abandon(job_id, index, lease, until))

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

    async def cancel(self, job_id: str) -> Changed:
        return await self._change(job_id, requests.cancel(job_id))

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
        return Changed(False, found_state(reasons[0]))

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
                {"Delete": {"Key": requests.key(keys.all_jobs(meta.job_id))}},
            ]
        )
        return Changed(True, None) if reasons is None else Changed(False, found_state(reasons[0]))

    async def removals(self, shard: int) -> Sequence[str]:
        return await self._ids(keys.removals(shard))

    async def remove_segment(self, job_id: str, number: int) -> None:
        pk = keys.segment(job_id, number)[0]
        items = await self._query("pk = :pk", {":pk": pk}, consistent=True)
        await self._remove([(item["pk"], item["sk"]) for item in items])

    async def remove_job(self, job_id: str) -> None:
        await self._remove([keys.meta(job_id), keys.state(job_id), keys.delivery(job_id), keys.assembly(job_id)])

    async def leave_removals(self, shard: int, job_id: str) -> None:
        await self._write(self._client.update_item, requests.remove_id(keys.removals(shard), job_id))

    async def caller_live(self, caller: str) -> Sequence[str]:
        return await self._ids(keys.caller_live(caller))

    async def forget_live(self, job_id: str, *, caller: str | None = None, shard: int | None = None) -> None:
        if shard is not None:
            await self._write(self._client.update_item, requests.remove_id(keys.live(shard), job_id))
        if caller is not None:
            await self._write(self._client.update_item, requests.remove_id(keys.caller_live(caller), job_id))
