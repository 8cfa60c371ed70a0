"""Who is calling, and what they may do: identities, scopes, and the limits of a caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sift.errors import Forbidden
from sift.jobs import MAX_WINDOW

AuthType = Literal["key", "jwt", "event"]

#: What a credential may be for. `admin:<tenant>` is an admin of that tenant only.
FETCH, INFERENCE, ADMIN = "fetch", "inference", "admin"
SCOPES = (FETCH, INFERENCE, ADMIN)
DEFAULT_CLASS = "default"

#: Tenants, actors and classes. No `/` and no `#`, which the keys of the table are put together with; `|` is in the
#: subjects of some identity providers.
NAME_CHARS = 128
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._@:|+-]{{0,{NAME_CHARS - 1}}}")
NAME_FORM = f"1 to {NAME_CHARS} letters, digits, or ._@:|+-, the first a letter or digit"


def is_name(text: object) -> bool:
    """Whether it can name a tenant, an actor or a class."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def is_scope(text: str) -> bool:
    """Whether it is a scope that means something here."""
    kind, colon, tenant = text.partition(":")
    return kind == ADMIN and is_name(tenant) if colon else text in SCOPES


@dataclass(frozen=True, slots=True)
class Limits:
    """The caps of one caller. `targets_per_job`, `jobs_per_caller`, `retained_jobs` and `window` are counts,
    `job_bytes` is the content that one job may store, in bytes, `ttl_seconds` how long a job is kept after its end
    (0: for ever)."""

    targets_per_job: int
    jobs_per_caller: int
    retained_jobs: int
    job_bytes: int
    window: int = MAX_WINDOW
    ttl_seconds: int = 86_400

    def with_overrides(self, overrides: Mapping[str, int]) -> Limits:
        """These limits, with those that a class or a key has in their place; other names are left out."""
        return replace(self, **{name: overrides[name] for name in LIMIT_RANGES if name in overrides})


#: The least and the most of each that a class or a key may have: those of the template's parameters. To keep jobs
#: for ever is for the whole deployment to decide, for its bucket forgets or does not.
LIMIT_RANGES: Mapping[str, tuple[int, int]] = {
    "targets_per_job": (1, 9_000),
    "jobs_per_caller": (1, 1_000),
    "retained_jobs": (1, 100_000),
    "job_bytes": (1_048_576, 10_737_418_240),
    "window": (1, MAX_WINDOW),
    "ttl_seconds": (1, 2_592_000),
}


def check_limit(name: str, value: object) -> None:
    """Raises ValueError unless it is a limit that a class or a key may have."""
    if name not in LIMIT_RANGES:
        raise ValueError(f"no limit is called {name} ({', '.join(LIMIT_RANGES)})")
    least, most = LIMIT_RANGES[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name} is a number from {least} to {most}")


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller. Jobs belong to `caller` (tenant and actor); the secret is not part of it.

    `subject` is who the credential says it is for, `application` the program that it was given to; both are only
    recorded. `allowed_models` None allows every model that is not denied. `key_id` is None with a JWT.
    """

    tenant: str
    actor: str
    key_id: str | None
    scopes: tuple[str, ...] = (FETCH,)
    limits: Mapping[str, int] = field(default_factory=dict)
    subject: str | None = None
    application: str | None = None
    auth_type: AuthType = "key"
    client_ip: str | None = None
    allowed_models: tuple[str, ...] | None = None
    denied_models: tuple[str, ...] = ()
    caller_class: str = DEFAULT_CLASS

    @property
    def caller(self) -> str:
        """Tenant and actor as one name; `/` is not allowed in a tenant, so it can't be read two ways."""
        return f"{self.tenant}/{self.actor}"

    def is_admin_of(self, tenant: str | None) -> bool:
        """Whether it may read the jobs of this tenant; None: of every tenant."""
        return ADMIN in self.scopes or (tenant is not None and f"{ADMIN}:{tenant}" in self.scopes)

    def require(self, *scopes: str) -> None:
        """Raises Forbidden unless it has one of these scopes; `admin` stands for an admin of any tenant."""
        held = {ADMIN if scope.startswith(f"{ADMIN}:") else scope for scope in self.scopes}
        if not held & set(scopes):
            raise Forbidden(
                "forbidden",
                f"This needs the scope {' or '.join(scopes)}.",
                "Use a key or token with that scope; an operator grants it.",
            )

    def snapshot(self) -> dict[str, Any]:
        """What is stored with a job, and what the job runs as. What is None is left out."""
        found = {
            "tenant": self.tenant,
            "actor": self.actor,
            "subject": self.subject,
            "application": self.application,
            "auth_type": self.auth_type,
            "key_id": self.key_id,
            "client_ip": self.client_ip,
            "scopes": list(self.scopes),
            "allowed_models": None if self.allowed_models is None else list(self.allowed_models),
            "denied_models": list(self.denied_models),
            "caller_class": self.caller_class,
        }
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def from_snapshot(cls, stored: Mapping[str, Any]) -> Identity:
        """Who a job runs as. Snapshots of earlier releases have tenant, actor, key id and scopes only."""
        models = stored.get("allowed_models")
        return cls(
            tenant=stored["tenant"],
            actor=stored["actor"],
            key_id=stored.get("key_id"),
            scopes=tuple(stored["scopes"]),
            subject=stored.get("subject"),
            application=stored.get("application"),
            auth_type=stored.get("auth_type", "key"),
            client_ip=stored.get("client_ip"),
            allowed_models=None if models is None else tuple(models),
            denied_models=tuple(stored.get("denied_models", ())),
            caller_class=stored.get("caller_class", DEFAULT_CLASS),
        )


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """An API key as it is stored: the SHA-256 of its secret (hex), never the secret. Times are in seconds."""

    key_id: str
    secret_sha256: str
    identity: Identity
    expires_at: int | None = None
    created_at: int | None = None
    revoked_at: int | None = None
    #: Whether events and schedules may submit as whoever holds it: an operator's word, which the key itself can't give.
    events: bool = False
