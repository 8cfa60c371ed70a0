"""The part of the table that webhooks need: what became of each job's, and each caller's secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sift.store import codec, keys, requests
from sift.store.table import Table

if TYPE_CHECKING:
    from sift.webhooks import Delivery, Secrets


class WebhookTable(Table):
    """One small item per job with a webhook, and one per caller."""

    async def note_delivery(self, job_id: str, delivery: Delivery, expires_at: int | None) -> None:
        await self._put_on_condition(requests.note_delivery(keys.delivery(job_id), delivery, expires_at))

    async def get_deliveries(self, job_ids: Sequence[str]) -> Mapping[str, Delivery]:
        pairs = {keys.delivery(job_id): job_id for job_id in job_ids}
        found = await self._read_batch(list(pairs), consistent=True)
        return {pairs[pair]: codec.delivery_from(item) for pair, item in found.items()}

    async def get_secrets(self, caller: str) -> Secrets | None:
        item = await self._get(keys.webhook_secrets(caller))
        return None if item is None else codec.secrets_from(item)

    async def put_secrets(self, caller: str, secrets: Secrets, seen: Secrets | None) -> bool:
        request = requests.put_secrets(keys.webhook_secrets(caller), secrets, seen)
        return await self._put_on_condition(request)
