"""What the table in memory holds beside jobs: how far results files have come, paces of hosts, webhooks, keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sift.assembly import Assembly
from sift.identity import KeyRecord
from sift.pacing import Claim, Pace
from sift.webhooks import Delivery, Secrets


class MemoryRecords:
    """Every method is atomic: none awaits while it changes something."""

    def __init__(self) -> None:
        self.assemblies: dict[str, Assembly] = {}
        self.paces: dict[str, Pace] = {}
        self.deliveries: dict[str, Delivery] = {}
        self.secrets: dict[str, Secrets] = {}
        self.keys: dict[str, KeyRecord] = {}

    # results files

    async def get_assembly(self, job_id: str) -> Assembly | None:
        return self.assemblies.get(job_id)

    async def put_assembly(self, assembly: Assembly) -> bool:
        held = self.assemblies.get(assembly.job_id)
        if assembly.revision != (0 if held is None else held.revision + 1):
            return False
        self.assemblies[assembly.job_id] = assembly
        return True

    async def remove_assembly(self, job_id: str) -> None:
        self.assemblies.pop(job_id, None)

    # hosts

    async def get_pace(self, host: str) -> Pace | None:
        return self.paces.get(host)

    async def claim_tickets(self, host: str, claim: Claim) -> tuple[bool, Pace | None]:
        held = self.paces.get(host)
        pace = held or Pace()
        if (
            claim.queue != (pace.next_at > claim.base)
            or claim.exact not in {None, pace.issued}
            or claim.was != pace.spacing
        ):
            return False, held
        start = pace.next_at if claim.queue else claim.base
        next_at = start + claim.tickets * claim.interval_ms
        self.paces[host] = replace(pace, next_at=next_at, issued=pace.issued + claim.tickets, spacing=claim.spacing)
        return True, self.paces[host]

    async def slow_host(self, host: str, after: int) -> None:
        pace = self.paces.get(host, Pace())
        self.paces[host] = replace(pace, after=max(pace.after, after))

    async def hold_lane(self, host: str, lane: int, until: int) -> None:
        if host in self.paces:
            pace = self.paces[host]
            self.paces[host] = replace(pace, holds={**pace.holds, lane: until})

    async def free_lane(self, host: str, lane: int, until: int) -> None:
        pace = self.paces.get(host)
        if pace is not None and pace.holds.get(lane) == until:
            left = {other: end for other, end in pace.holds.items() if other != lane}
            self.paces[host] = replace(pace, holds=left)

    # webhooks

    async def note_delivery(self, job_id: str, delivery: Delivery, expires_at: int | None) -> None:
        held = self.deliveries.get(job_id)
        if held is None or held.state != "failed":
            self.deliveries[job_id] = delivery

    async def get_deliveries(self, job_ids: Sequence[str]) -> Mapping[str, Delivery]:
        return {job_id: self.deliveries[job_id] for job_id in job_ids if job_id in self.deliveries}

    async def get_secrets(self, caller: str) -> Secrets | None:
        return self.secrets.get(caller)

    async def put_secrets(self, caller: str, secrets: Secrets, seen: Secrets | None) -> bool:
        held = self.secrets.get(caller)
        if (held and held.current) != (seen and seen.current):
            return False
        self.secrets[caller] = secrets
        return True

    # keys

    async def get_key(self, key_id: str) -> KeyRecord | None:
        return self.keys.get(key_id)

    async def put_key(self, record: KeyRecord) -> None:
        self.keys[record.key_id] = record

    async def list_keys(self) -> Sequence[KeyRecord]:
        return [self.keys[key_id] for key_id in sorted(self.keys)]

    async def revoke_key(self, key_id: str, at: int) -> KeyRecord | None:
        record = self.keys.get(key_id)
        if record is not None and record.revoked_at is None:
            record = self.keys[key_id] = replace(record, revoked_at=at)
        return record
