"""A rule that the template is excused from says why, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.template.document import load

ID = re.compile(r"CKV2?_AWS_\d+")
LEAST_WORDS = 8


def suppressions(template: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The resource and the entry of every rule that is skipped."""
    for name, resource in template["Resources"].items():
        for entry in resource.get("Metadata", {}).get("checkov", {}).get("skip", []):
            yield name, entry


def faults(template: dict[str, Any]) -> list[str]:
    """What is wrong with the suppressions of a template."""
    found = []
    seen = set()
    for name, entry in suppressions(template):
        rule, reason = entry.get("id", ""), entry.get("comment", "")
        if not ID.fullmatch(rule) or set(entry) != {"id", "comment"}:
            found.append(f"{name}: {entry} is no suppression")
        if len(set(reason.split())) < LEAST_WORDS:
            found.append(f"{name}: {rule} has no reason")
        if (name, rule) in seen:
            found.append(f"{name}: {rule} is there twice")
        seen.add((name, rule))
    return found


def test_every_suppression_has_a_reason() -> None:
    template = load()
    assert len(list(suppressions(template))) > 10
    assert faults(template) == []


def test_the_other_linter_is_asked_for_no_excuse() -> None:
    template = load()
    places = [
        template.get("Metadata", {}),
        *(resource.get("Metadata", {}) for resource in template["Resources"].values()),
    ]
    assert [place for place in places if "cfn-lint" in place] == []


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "CKV_AWS_1"},
        {"id": "CKV_AWS_1", "comment": ""},
        {"id": "CKV_AWS_1", "comment": "not needed"},
        {"id": "CKV_AWS_1", "comment": "no " * 20},
        {"id": "all", "comment": "one two three four five six seven eight nine"},
        {"comment": "one two three four five six seven eight nine"},
    ],
)
def test_a_suppression_without_one_is_noticed(entry: dict[str, Any]) -> None:
    assert faults({"Resources": {"Queue": {"Metadata": {"checkov": {"skip": [entry]}}}}})


def test_a_suppression_that_is_there_twice_is_noticed() -> None:
    entry = {"id": "CKV_AWS_1", "comment": "one two three four five six seven eight nine"}
    assert faults({"Resources": {"Queue": {"Metadata": {"checkov": {"skip": [entry, entry]}}}}})
