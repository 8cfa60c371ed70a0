"""Caller classes: named limits, from the one document that a deployment sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sift.identity import DEFAULT_CLASS, NAME_FORM, check_limit, is_name

if TYPE_CHECKING:
    from sift.pacing import PaceLimits

#: What a class may have beside limits: how often one host is asked for all its callers, and by how many at once.
PACE = ("host_rate", "host_concurrency")
MOST_PACE = 100


def read_classes(text: str) -> dict[str, dict[str, int]]:
    """Limits by class from `{"batch": {"targets_per_job": 9000, "window": 32}}`; empty text is no class.

    What a class leaves out is as in the class `default`, which the deployment's own parameters make. Raises
    ValueError, which says what is wrong where.
    """
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("not an object of classes")
    for name, limits in found.items():
        _check(name, limits)
    return found


def _check(name: str, limits: Any) -> None:
    if name == DEFAULT_CLASS:
        raise ValueError(f"{DEFAULT_CLASS} is made by the other parameters")
    if not is_name(name):
        raise ValueError(f"a class needs a name of {NAME_FORM}")
    if not isinstance(limits, dict):
        raise ValueError(f"{name}: not an object of limits")
    for limit, value in limits.items():
        if limit in PACE:
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_PACE:
                raise ValueError(f"{name}: {limit} is a number from 1 to {MOST_PACE}")
            continue
        try:
            check_limit(limit, value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if own := [limit for limit in PACE if limit in limits]:
        if len(own) < len(PACE):
            raise ValueError(f"{name}: {' and '.join(PACE)} come together")
        try:
            pace_of(limits).check()
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def pace_of(limits: Mapping[str, int]) -> PaceLimits:
    """The pace of a class that has one of its own."""
    from sift.pacing import PaceLimits  # most deployments name none: no cold start pays for it

    return PaceLimits(*(limits[name] for name in PACE))


def read_paces(text: str) -> dict[str, PaceLimits]:
    """The classes that have a pace of their own. Raises ValueError as `read_classes` does."""
    return {name: pace_of(limits) for name, limits in read_classes(text).items() if PACE[0] in limits}
