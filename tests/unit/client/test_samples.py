"""The check of the sample batch notices what it is there to notice."""

from __future__ import annotations

from typing import Any

import pytest

from sift_client.samples import SAMPLES, find_surprises, make_targets
from sift_client.shapes import Slot, TargetError


def as_expected() -> tuple[dict[int, Slot], dict[int, str]]:
    slots, contents = {}, {}
    for index, sample in enumerate(SAMPLES):
        if sample.error:
            slots[index] = Slot(index=index, status="failed", error=TargetError(code=sample.error))
        else:
            slots[index] = Slot(index=index, status="done", error=None)
            contents[index] = f"... {sample.holds} ..."
    return slots, contents


def test_the_batch() -> None:
    targets = make_targets("http://127.0.0.1:1", "v1")
    assert 12 <= len(targets) <= 32
    assert len({target["url"] for target in targets}) == len(targets)
    assert "http://127.0.0.1:1/busy?id=v1" in [target["url"] for target in targets]
    assert {target["options"].get("mode", "auto") for target in targets} == {"auto", "article", "page", "text", "raw"}


def test_all_is_well() -> None:
    assert find_surprises(*as_expected()) == []


@pytest.mark.parametrize(
    ("slot", "content", "message"),
    [
        ({"status": "failed", "error": {"code": "timeout"}}, None, "expected done, got failed (timeout)"),
        ({"status": "cancelled"}, None, "expected done, got cancelled"),
        ({}, None, "the content was not saved"),
        ({}, "Thirty", "the content lacks 'Thirty-seven wheels'"),
        ({}, "Thirty-seven wheels, Rubber boots", "the content still holds 'Rubber boots'"),
    ],
)
def test_a_surprise_is_said(slot: dict[str, Any], content: str | None, message: str) -> None:
    slots, contents = as_expected()
    slots[0].update(slot)  # type: ignore[typeddict-item]
    if content is None:
        del contents[0]
    else:
        contents[0] = content
    assert find_surprises(slots, contents) == [f"0000 /articles/tide-tables.html: {message}"]


def test_a_missing_page_that_is_found_is_a_surprise_and_so_is_a_lost_slot() -> None:
    slots, contents = as_expected()
    missing = next(index for index, sample in enumerate(SAMPLES) if sample.error)
    slots[missing] = Slot(index=missing, status="done", error=None)
    del slots[1]
    surprises = find_surprises(slots, contents)
    assert len(surprises) == 2
    assert "no slot" in surprises[0]
    assert "expected failed (http_error), got done" in surprises[1]
