"""The part of the table that paces hosts: one small item each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from sift import aws
from sift.store import codec, keys, requests
from sift.store.table import Table

if TYPE_CHECKING:
    from sift.pacing import Claim, Pace

#: A host that nobody asks for this long (seconds) is forgotten.
KEPT_SECONDS = 86_400


class HostTable(Table):
    """Claims behind others commute, so that they are refused to nobody."""

    async def get_pace(self, host: str) -> Pace | None:
        item = await self._get(keys.pace(host))
        return None if item is None else codec.pace_from(item)

    async def claim_tickets(self, host: str, claim: Claim) -> tuple[bool, Pace | None]:
        step = claim.tickets * claim.interval_ms
        values: dict[str, Any] = {
            ":v": codec.VERSION, ":tickets": claim.tickets, ":none": 0, ":base": claim.base, ":empty": {},
            ":was": claim.was, ":spacing": claim.spacing,
            ":expires": claim.base // 1000 + KEPT_SECONDS,
        }  # fmt: skip
        if claim.queue:
            next_at, condition = "next_at + :step", "next_at > :base"
            values[":step"] = step
        else:
            next_at, condition = ":next", "(attribute_not_exists(next_at) OR next_at <= :base)"
            values[":next"] = claim.base + step
        condition += " AND spacing = :was" if claim.was else " AND (attribute_not_exists(spacing) OR spacing = :was)"
        if claim.exact is not None:
            condition += " AND issued = :seen"
            values[":seen"] = claim.exact
        update = (
            f"SET next_at = {next_at}, issued = if_not_exists(issued, :none) + :tickets, #v = :v, "
            "holds = if_not_exists(holds, :empty), spacing = :spacing, expires_at = :expires"
        )
        return await self._pace(host, update, condition, values)

    async def slow_host(self, host: str, after: int) -> None:
        values = {":v": codec.VERSION, ":after": after, ":expires": after // 1000 + KEPT_SECONDS}
        update = "SET #after = :after, #v = :v, expires_at = :expires"
        condition = "attribute_not_exists(#after) OR #after < :after"
        await self._pace(host, update, condition, values, {"#after": "after"})

    async def hold_lane(self, host: str, lane: int, until: int) -> None:
        values = {":until": until, ":v": codec.VERSION, ":expires": until // 1000 + KEPT_SECONDS}
        update = "SET holds.#lane = :until, expires_at = :expires"
        await self._pace(host, update, "#v = :v", values, {"#lane": str(lane)})

    async def free_lane(self, host: str, lane: int, until: int) -> None:
        values = {":until": until, ":v": codec.VERSION}
        condition = "#v = :v AND holds.#lane = :until"
        await self._pace(host, "REMOVE holds.#lane", condition, values, {"#lane": str(lane)})

    async def _pace(
        self,
        host: str,
        update: str,
        condition: str,
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
    ) -> tuple[bool, Pace | None]:
        used = {"#v": "v"} if "#v" in update + condition else {}
        request = {
            "Key": requests.key(keys.pace(host)),
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {**used, **(names or {})},
            "ExpressionAttributeValues": codec.to_wire(
                {name: value for name, value in values.items() if name in update + condition}
            ),
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            answer = await self._write(self._client.update_item, request)
        except ClientError as error:
            if aws.error_code(error) != "ConditionalCheckFailedException":
                raise
            found: Any = error.response.get("Item")
            return False, codec.pace_from(codec.from_wire(found)) if found else None
        return True, codec.pace_from(codec.from_wire(answer["Attributes"]))
