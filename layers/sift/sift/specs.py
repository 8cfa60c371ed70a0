"""Targets as they were submitted, and as they are kept until they are sent out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sift.packing import pack, unpack


@dataclass(frozen=True, slots=True)
class Spec:
    """One target as submitted, its options merged with the job's. `label` is the caller's own id for it;
    `attempts` are those of the job that this one retries; `pace` is the caller class by whose pace hosts are asked,
    None for that of everybody."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str | None = None
    attempts: int = 0
    pace: str | None = None


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """One request to the model gateway as submitted. `body` is its JSON text, or None where that is in the bucket,
    under the key `blob`; `model` is the one that it names, if any. The rest is as of a `Spec`."""

    path: str
    model: str | None
    body: str | None
    label: str | None = None
    attempts: int = 0
    blob: str | None = None


AnySpec = Spec | RequestSpec


def pack_specs(specs: Sequence[AnySpec]) -> bytes:
    """Targets as they are kept, inline or in a blob: `[url, options, label, attempts]` each, with a pace of
    its own as the fifth; a request by its names."""
    return pack([_spec_value(spec) for spec in specs])


def _spec_value(spec: AnySpec) -> Any:
    if isinstance(spec, Spec):
        values = [spec.url, dict(spec.options), spec.label, spec.attempts]
        return values if spec.pace is None else [*values, spec.pace]
    names = ("path", "model", "body", "label", "attempts", "blob")
    return {name: getattr(spec, name) for name in names}


def unpack_specs(data: bytes) -> list[AnySpec]:
    """The inverse of `pack_specs`."""
    return [RequestSpec(**values) if isinstance(values, dict) else Spec(*values) for values in unpack(data)]
