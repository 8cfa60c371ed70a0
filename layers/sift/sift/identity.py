"""Who is calling: the identity behind a key, and what it may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Limits:
    """The caps of one caller. `targets_per_job`, `jobs_per_caller` and `retained_jobs` are counts,
    `job_bytes` is the content that one job may store, in bytes."""

    targets_per_job: int
    jobs_per_caller: int
    retained_jobs: int
    job_bytes: int

    def with_overrides(self, overrides: Mapping[str, int]) -> Limits:
        """These limits, with those that a key carries in their place."""
        return Limits(
            targets_per_job=overrides.get("targets_per_job", self.targets_per_job),
            jobs_per_caller=overrides.get("jobs_per_caller", self.jobs_per_caller),
            retained_jobs=overrides.get("retained_jobs", self.retained_jobs),
            job_bytes=overrides.get("job_bytes", self.job_bytes),
        )


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller. Jobs belong to `caller` (tenant and actor); the secret is not part of it."""

    tenant: str
    actor: str
    key_id: str
    scopes: tuple[str, ...] = ("fetch",)
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def caller(self) -> str:
        """Tenant and actor as one name; `/` is not allowed in a tenant, so it can't be read two ways."""
        return f"{self.tenant}/{self.actor}"

    def snapshot(self) -> dict[str, Any]:
        """What is stored with a job."""
        return {
            "tenant": self.tenant,
            "actor": self.actor,
            "key_id": self.key_id,
            "scopes": list(self.scopes),
        }


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """An API key as it is stored: the SHA-256 of its secret (hex), never the secret. `expires_at` is in seconds."""

    key_id: str
    secret_sha256: str
    identity: Identity
    expires_at: int | None = None
