"""The part of the table that lists jobs: those of a caller, and all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from sift import aws
from sift.store import codec, keys, requests
from sift.store.table import Table


class ListTable(Table):
    """One small item per job and list, which says until when the job is kept."""

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

    async def list_jobs(
        self, caller: str, now_ms: int, before: str | None, limit: int
    ) -> tuple[Sequence[str], str | None]:
        return await self._list(functools.partial(keys.caller_job, caller), now_ms, before, limit)

    async def list_all_jobs(
        self, tenant: str | None, now_ms: int, before: str | None, limit: int
    ) -> tuple[Sequence[str], str | None]:
        wanted = None if tenant is None else requests.Condition("tenant = :tenant", {":tenant": tenant})
        return await self._list(keys.all_jobs, now_ms, before, limit, wanted)

    async def _list(
        self,
        entry: Callable[[str], tuple[str, str]],
        now_ms: int,
        before: str | None,
        limit: int,
        wanted: requests.Condition | None = None,
    ) -> tuple[Sequence[str], str | None]:
        """Ids of a list of jobs, newest first; `entry` makes the key of a job's entry."""
        pk, prefix = entry("")
        start = {} if before is None else {"ExclusiveStartKey": requests.key(entry(before))}
        kept = "(attribute_not_exists(expires_at) OR expires_at > :now)"
        page = await aws.call(
            self._client.query,
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND begins_with(sk, :job)",
            FilterExpression=kept if wanted is None else f"{kept} AND {wanted.text}",
            ExpressionAttributeValues=codec.to_wire(
                {":pk": pk, ":job": prefix, ":now": now_ms // 1000, **(wanted.values if wanted else {})}
            ),
            ScanIndexForward=False,
            Limit=limit,
            **start,
        )
        found = [codec.from_wire(item)["sk"].removeprefix(prefix) for item in page["Items"]]
        last = page.get("LastEvaluatedKey")
        return found, None if last is None else last["sk"]["S"].removeprefix(prefix)
