"""A job's state within one write unit: every change of a target is then charged as one."""

from __future__ import annotations

from typing import Any

import pytest

from sift import ids
from sift.jobs import MAX_WINDOW, Flight, State, Status
from sift.store import codec, keys, requests

#: A write unit is up to 1 KB ("Read and write capacity", DynamoDB developer guide).
WRITE_UNIT = 1_024
START = 1_796_000_000_000
DAY = 24 * 3_600_000
LEASE_MS = 106_000
TOTAL = 9_000


def item_size(item: dict[str, Any]) -> int:
    """Bytes of an item on the wire's format, by "DynamoDB item sizes and formats" of the developer guide."""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items())


def value_size(value: dict[str, Any]) -> int:
    kind: str
    content: Any
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            significant: str = content.lstrip("-").replace(".", "").strip("0")
            return -(-len(significant) // 2) + 1 + int(content.startswith("-"))
        case "BOOL" | "NULL":
            return 1
        case "M":
            return 3 + sum(1 + len(name.encode()) + value_size(inner) for name, inner in dict(content).items())
    raise AssertionError(f"no rule for {kind}")


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "é"}, 2),
        ({"N": "0"}, 1),
        ({"N": "7"}, 2),
        ({"N": "42"}, 2),
        ({"N": "-42"}, 3),
        ({"N": "123"}, 3),
        ({"N": "8600"}, 2),
        ({"N": "86399999"}, 5),
        ({"BOOL": False}, 1),
        ({"M": {}}, 3),
        ({"M": {"ab": {"N": "7"}}}, 3 + 1 + 2 + 2),
    ],
)
def test_the_rules_of_the_guide(value: dict[str, Any], size: int) -> None:
    assert value_size(value) == size


def fullest(status: Status, **values: Any) -> dict[str, Any]:
    """A state at the end of the longest default deadline: the window full, each target busy and claimed to the last."""
    end = START + DAY - 1
    entry = Flight(end + LEASE_MS, claims=4, busy_since=end)
    state = State(
        job_id=ids.new_job_id(START),
        status=status,
        total=TOTAL - 1,
        released=TOTAL - 1,
        window=MAX_WINDOW,
        budget=64 * 2**20 - 1,
        deadline_at=START + DAY - 1,
        expires_at=(START + 2 * DAY) // 1000 + 1,
        done=4_567,
        failed=4_321,
        bytes=64 * 2**20 - 1,
        flight=dict.fromkeys(range(TOTAL - 1 - MAX_WINDOW, TOTAL - 1), entry),
        started_at=end,
        notify=7,
        **values,
    )
    put = requests.put(keys.state(state.job_id), codec.state_item(state))
    item: dict[str, Any] = put["Item"]
    assert codec.state_from(codec.from_wire(item)) == state
    return item


def test_the_state_of_a_full_window_is_one_write_unit() -> None:
    assert item_size(fullest("running")) <= WRITE_UNIT


def test_the_state_of_a_full_window_that_is_pausing_is_one_write_unit() -> None:
    assert item_size(fullest("pausing", pausing_at=START + DAY - 1)) <= WRITE_UNIT
