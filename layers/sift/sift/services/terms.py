"""What the service grants to callers, and over how many items of the table the live jobs are spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sift.errors import Forbidden
from sift.identity import DEFAULT_CLASS, Identity, Limits

#: One live shard holds this many job ids, so that its item stays small.
JOBS_PER_SHARD = 500
#: Shards that any deployment has had: as many as template.yaml's largest JobsTotal makes. A lowered JobsTotal leaves
#: jobs behind in shards beyond its own, so whoever looks for jobs looks into all of these.
MOST_SHARDS = 20


@dataclass(frozen=True, slots=True)
class Terms:
    """What the service grants: `jobs_total` live jobs in all, `deadline_seconds` to each, and to a caller the limits
    of its class; `limits` are those of the class `default`. `paths` are those that a request may ask the gateway for,
    as patterns; None where there is no gateway. `paced`: classes by whose own pace hosts are asked."""

    jobs_total: int
    limits: Limits
    deadline_seconds: int
    classes: Mapping[str, Limits] = field(default_factory=dict)
    paths: tuple[str, ...] | None = None
    paced: frozenset[str] = frozenset()

    def limits_of(self, identity: Identity) -> Limits:
        """The limits of its class, and in their place those of its key. Raises Forbidden for a class that is not
        there: taking another would be too little or too much."""
        named = self.limits if identity.caller_class == DEFAULT_CLASS else self.classes.get(identity.caller_class)
        if named is None:
            raise Forbidden(
                "forbidden",
                f"This deployment has no caller class {identity.caller_class}.",
                "An operator can add it to CallerClasses, or give you a key of another class.",
            )
        return named.with_overrides(identity.limits)


def shard_count(jobs_total: int) -> int:
    """Over how many items the ids of the live jobs are spread."""
    return max(1, -(-jobs_total // JOBS_PER_SHARD))


def shard_cap(jobs_total: int, shard: int) -> int:
    """A shard's share of the total cap; the shares add up to it."""
    share, rest = divmod(jobs_total, shard_count(jobs_total))
    return share + (shard < rest)
