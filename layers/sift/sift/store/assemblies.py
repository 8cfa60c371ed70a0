"""The part of the table that tells how far each results file has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sift.store import codec, keys, requests
from sift.store.table import Table

if TYPE_CHECKING:
    from sift.assembly import Assembly


class AssemblyTable(Table):
    """One small item per job, changed on condition of its revision."""

    async def get_assembly(self, job_id: str) -> Assembly | None:
        item = await self._get(keys.assembly(job_id))
        return None if item is None else codec.assembly_from(item)

    async def put_assembly(self, assembly: Assembly) -> bool:
        request = requests.put(keys.assembly(assembly.job_id), codec.assembly_item(assembly))
        if assembly.revision == 0:
            request["ConditionExpression"] = "attribute_not_exists(pk)"
        else:
            request["ConditionExpression"] = "revision = :before"
            request["ExpressionAttributeValues"] = codec.to_wire({":before": assembly.revision - 1})
        return await self._put_on_condition(request)

    async def remove_assembly(self, job_id: str) -> None:
        await self._remove([keys.assembly(job_id)])
