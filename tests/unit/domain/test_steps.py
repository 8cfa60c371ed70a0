"""What a job's state calls for: every status, and what holds for any state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift.jobs import (
    ENDED,
    LIVE,
    MAX_WINDOW,
    Flight,
    Pause,
    Release,
    Settle,
    State,
    Status,
    Step,
    claim_refusal,
    counts,
    next_step,
)

NOW = 1_796_000_000_000
HOUR = 3_600_000
QUIET = Flight(NOW - 5_000)
LEASED = Flight(NOW + 60_000, claims=1)


def job(status: Status = "running", **values: object) -> State:
    """A job of 10 targets in a window of 4, its first 4 out."""
    defaults: dict[str, object] = {
        "total": 10,
        "released": 4,
        "window": 4,
        "budget": 1_000,
        "deadline_at": NOW + HOUR,
        "expires_at": None,
        "flight": dict.fromkeys(range(4), QUIET),
    }
    return State(job_id="job_0", status=status, **{**defaults, **values})  # type: ignore[arg-type]


ALL_DONE: dict[str, object] = {"released": 10, "flight": {}}


@pytest.mark.parametrize(
    ("state", "step"),
    [
        # the end
        (job("running", **ALL_DONE, done=10), Settle("done")),
        (job("running", **ALL_DONE, done=9, failed=1), Settle("partial")),
        (job("running", **ALL_DONE, failed=10), Settle("failed")),
        (job("queued", **ALL_DONE, done=10), Settle("done")),
        (job("paused", **ALL_DONE, done=10), Settle("done")),
        (job("pausing", **ALL_DONE, done=10), Settle("done")),
        # all done in the very moment of the deadline: it is done
        (job("running", **ALL_DONE, done=10, deadline_at=NOW), Settle("done")),
        # the deadline
        (job("queued", deadline_at=NOW), Settle("failed", "deadline")),
        (job("running", deadline_at=NOW, released=5, done=1), Settle("partial", "deadline")),
        (job("running", deadline_at=NOW, released=5, failed=1), Settle("failed", "deadline")),
        (job("paused", deadline_at=NOW - 1), Settle("failed", "deadline")),
        (job("pausing", deadline_at=NOW - 1, flight={0: LEASED}, released=1), Settle("failed", "deadline")),
        (job("cancelling", deadline_at=NOW - 1, flight={0: LEASED}, released=1), Settle("cancelled")),
        (job("running", deadline_at=NOW + 1), None),
        # cancelling waits for the leases, then ends; it is never `done`
        (job("cancelling", flight={0: LEASED, 1: QUIET}, released=2), None),
        (job("cancelling", flight={0: QUIET}, released=1), Settle("cancelled")),
        (job("cancelling", **ALL_DONE, done=10), Settle("cancelled")),
        # pausing waits for the leases
        (job("pausing", flight={0: LEASED, 1: QUIET}, released=2), None),
        (job("pausing", flight={0: QUIET}, released=1), Pause()),
        (job("paused", flight={}, released=0), None),
        # the window
        (job("running"), None),
        (job("running", flight={0: QUIET, 1: QUIET, 2: QUIET}, done=1), None),
        (job("running", flight={2: QUIET, 3: QUIET}, done=2), Release(4, 2)),
        (job("queued", flight={}, done=4), Release(4, 4)),
        (job("running", flight={}, released=9, done=9), Release(9, 1)),
        (job("running", window=1, flight={3: LEASED}, done=3), None),
        (job("running", window=1, flight={}, done=4), Release(4, 1)),
        (job("running", window=3, flight={3: QUIET, 2: QUIET}, done=2), None),
        (job("running", window=3, flight={3: QUIET}, done=3), Release(4, 2)),
        (job("running", flight={9: QUIET}, released=10, done=9), None),
        *[(job(status, **ALL_DONE, done=10, deadline_at=NOW - 1), None) for status in sorted(ENDED)],
    ],
)
def test_what_a_state_calls_for(state: State, step: Step | None) -> None:
    assert next_step(state, NOW) == step


@st.composite
def states(draw: st.DrawFn) -> State:
    """Any state that keeps `done + failed + len(flight) == released <= total`."""
    total = draw(st.integers(1, 9_000))
    released = draw(st.integers(0, total))
    window = draw(st.integers(1, MAX_WINDOW))
    out = draw(st.sets(st.integers(0, max(0, released - 1)), max_size=min(window, released)))
    entry = st.builds(Flight, st.integers(NOW - HOUR, NOW + HOUR), st.integers(0, 4))
    finished = released - len(out)
    done = draw(st.integers(0, finished))
    return State(
        job_id="job_0",
        status=draw(st.sampled_from(sorted(LIVE | ENDED))),
        total=total,
        released=released,
        window=window,
        budget=1,
        deadline_at=NOW + draw(st.integers(-HOUR, HOUR)),
        expires_at=None,
        done=done,
        failed=finished - done,
        flight={index: draw(entry) for index in out},
    )


@given(states())
def test_counts_add_up(state: State) -> None:
    tally = counts(state, NOW)
    total = tally.pop("total")
    assert total == state.total == sum(tally.values())
    assert min(tally.values()) >= 0
    assert tally["done"] == state.done
    if state.status in ENDED:
        assert tally["pending"] == tally["running"] == 0
    if state.status != "cancelled":
        assert tally["cancelled"] == 0


@given(states())
def test_a_step_always_brings_a_job_forward(state: State) -> None:
    match next_step(state, NOW):
        case Settle(status, error):
            assert state.status in LIVE
            assert status in ENDED
            assert (status == "done") <= (error is None and state.failed == 0 and state.done == state.total)
            assert next_step(replace(state, status=status), NOW) is None
        case Pause():
            assert state.status == "pausing"
            assert state.running(NOW) == 0
        case Release(first, count):
            assert state.status in {"queued", "running"}
            assert first == state.released
            assert 1 <= count <= state.total - first
            assert len(state.flight) + count <= state.window
        case None:
            stuck = state.status in {"queued", "running"} and not state.flight and state.released < state.total
            assert not stuck, "nothing is out, and nothing is sent out"


@pytest.mark.parametrize("window", range(1, MAX_WINDOW + 1))
def test_one_finish_tops_the_window_up(window: int) -> None:
    """Of the finishes that see the window ever emptier, the first one acts at once and the last ones in its stead."""
    tries = []
    for room in range(window + 1):
        flight = dict.fromkeys(range(room, window), QUIET)
        state = job(total=1_000, released=window, window=window, done=room, flight=flight)
        first = Release(window, room)
        expected = first if room * 2 >= window else None
        assert next_step(state, NOW) == expected, "whoever else looks sees what is to be done"
        if next_step(state, NOW, after_finish=True) is not None:
            tries.append(room)
    half = -(-window // 2)
    assert tries == [room for room in range(window + 1) if room == half or room * 4 >= window * 3]


def test_after_the_last_finish_the_job_ends() -> None:
    state = job("running", **ALL_DONE, done=10)
    assert next_step(state, NOW, after_finish=True) == Settle("done")


def test_a_cancelled_job_counts_what_never_ran_as_cancelled() -> None:
    state = job("cancelled", released=4, done=1, failed=1, flight={0: LEASED, 1: QUIET})
    assert counts(state, NOW) == {
        "total": 10, "pending": 0, "running": 0, "done": 1, "failed": 1, "cancelled": 8,
    }  # fmt: skip


def test_a_job_that_ran_out_of_time_counts_what_never_ran_as_failed() -> None:
    state = job("partial", released=4, done=1, failed=1, flight={0: LEASED, 1: QUIET}, error="deadline")
    assert counts(state, NOW)["failed"] == 9


def test_a_lease_that_has_ended_is_not_running() -> None:
    state = job(flight={0: Flight(NOW, 1), 1: Flight(NOW + 1, 1), 2: QUIET, 3: QUIET})
    assert counts(state, NOW)["running"] == 1
    assert counts(state, NOW)["pending"] == 9


def test_a_busy_target_that_waits_is_not_running() -> None:
    state = job("pausing", flight={0: Flight(NOW + 60_000, 0, NOW - 9), 1: QUIET, 2: QUIET, 3: QUIET}, pausing_at=NOW)
    assert counts(state, NOW)["running"] == 0
    assert next_step(state, NOW) == Pause()
    assert claim_refusal(replace(state, status="running"), 0, NOW) == "held"


@pytest.mark.parametrize(
    ("state", "index", "refusal"),
    [
        (None, 0, "gone"),
        (job("running"), 7, "gone"),
        (job("queued", flight={}), 0, "gone"),
        (job("running", flight={0: LEASED}), 0, "held"),
        (job("queued", flight={0: LEASED}), 0, "held"),
        (job("pausing"), 0, "stopped"),
        (job("paused"), 7, "stopped"),
        (job("cancelling"), 0, "over"),
        *[(job(status), 0, "over") for status in sorted(ENDED)],
    ],
)
def test_why_a_claim_was_refused(state: State | None, index: int, refusal: str) -> None:
    assert claim_refusal(state, index, NOW) == refusal


def test_a_job_expires_with_the_second() -> None:
    state = job(expires_at=NOW // 1000)
    assert state.expired(NOW)
    assert not state.expired(NOW - 1)
    assert not job(expires_at=None).expired(NOW * 2)
