"""Job ids: their form, their order, and the time in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift import ids

moments = st.integers(0, 2**48 - 1)
entropies = st.integers(0, 2**80 - 1)


@given(moments, entropies)
def test_an_id_has_its_form_and_tells_its_time(now: int, entropy: int) -> None:
    job_id = ids.new_job_id(now, entropy)
    assert len(job_id) == 30
    assert ids.is_job_id(job_id)
    assert ids.created_ms(job_id) == now


@given(moments, entropies, moments, entropies)
def test_ids_sort_by_time(first: int, one: int, second: int, other: int) -> None:
    early, late = ids.new_job_id(first, one), ids.new_job_id(second, other)
    assert (early < late) == ((first, one) < (second, other))


def test_the_first_and_the_last_id() -> None:
    assert ids.new_job_id(0, 0) == "job_" + "0" * 26
    assert ids.new_job_id(2**48 - 1, 2**80 - 1) == "job_7" + "Z" * 25


def test_ids_of_one_moment_differ() -> None:
    assert len({ids.new_job_id(1_796_000_000_000) for _ in range(1_000)}) == 1_000


@pytest.mark.parametrize(
    "text",
    [
        "", "job_", "job_" + "0" * 25, "job_" + "0" * 27, "job_8" + "0" * 25, "JOB_" + "0" * 26,
        "job_" + "I" + "0" * 25, "job_0" + "l" * 25, "job_0" + "u" * 25, "job_" + "0" * 26 + "\n",
        " job_" + "0" * 26, "job_" + "\uff10" * 26, "job_" + "0" * 26 + "#0", "../" + "0" * 26,
    ],
)  # fmt: skip
def test_what_is_no_job_id(text: str) -> None:
    assert not ids.is_job_id(text)
