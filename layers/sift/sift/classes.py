"""Caller classes: named limits, from the one document that a deployment sets."""

from __future__ import annotations

import json
from typing import Any

from sift.identity import DEFAULT_CLASS, NAME_FORM, check_limit, is_name


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
        try:
            check_limit(limit, value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
