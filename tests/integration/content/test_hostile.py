"""Hostile documents of every kind, those of `benchmarks.hostile`: each a typed outcome, within the limits of memory."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.hostile import Case, Found, cases, run
from sift.content.sandbox import ChildLimits

#: What may become of each kind; that it does so in time is what the pipeline's own limits see to.
OUTCOMES = {
    "page": {"content", "too_large", "empty", "damaged", "unsupported_media", "timeout"},
    "jq": {"filter_limit"},
    "PDF": {"content", "too_large", "empty", "damaged", "encrypted", "timeout"},
    "coding": {"too_large", "damaged", "empty"},
    "archive": {"content", "too_large", "empty", "damaged", "unsupported_media", "timeout"},
}
#: What jq itself gives up.
OTHER_OUTCOMES = {"a pattern that backtracks": {"bad_jq"}}
WORKER_BYTES = 128 * 1024 * 1024


def chosen(group: str) -> list[Case]:
    """The cases of a kind; of each page one way of reading, the others are for the benchmark."""
    return [case for case in cases() if case.group == group and case.options.get("mode") not in ("page", "text")]


@pytest.mark.timeout(3600)  # each case has its own limits, and some machines are slow
@pytest.mark.parametrize("group", OUTCOMES)
def test_every_hostile_document_has_a_typed_outcome_within_the_limits(group: str) -> None:
    async def main() -> list[tuple[Case, Found]]:
        return [pair async for pair in run(chosen(group))]

    results = asyncio.run(main())
    assert results
    allowed = {case.name: OTHER_OUTCOMES.get(case.name, OUTCOMES[group]) for case, _ in results}
    assert {case.name: found.outcome for case, found in results if found.outcome not in allowed[case.name]} == {}
    over = [
        case.name
        for case, found in results
        if found.child_bytes > ChildLimits().memory_bytes or found.worker_bytes > WORKER_BYTES
    ]
    assert over == []


def test_the_benchmark_has_all_kinds_and_each_case_once() -> None:
    names = [(case.group, case.name) for case in cases()]
    assert len(names) == len(set(names))
    assert {group for group, _ in names} == set(OUTCOMES)
    assert sum(group == "page" and "(article)" in name for group, name in names) >= 11
