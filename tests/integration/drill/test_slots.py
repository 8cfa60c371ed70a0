"""The caps over HTTP: a slot is free as soon as its job reads as ended, and a race for slots or work is exact."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.drill.conftest import JOBS_TOTAL
from tests.integration.drill.stage import ENDED, Caller, Stage
from tests.integration.local.project import Reply, wait_for

RACERS = 64
TURNS = 20
_numbers = itertools.count()


def race(attempts: list[Callable[[], Reply]]) -> list[Reply]:
    with ThreadPoolExecutor(RACERS) as threads:
        return list(threads.map(lambda attempt: attempt(), attempts))


def held_page(stage: Stage) -> str:
    """A page that is not given out before the race is over, so that its job holds its slot."""
    return f"{stage.pages.url}/held/{next(_numbers)}"


@pytest.fixture
def winners(stage: Stage) -> Any:
    """Jobs to be cancelled at the end of a test, with the caller of each."""
    made: list[tuple[Caller, str]] = []
    yield made
    for caller, job_id in made:
        assert caller.ask("POST", f"/v1/jobs/{job_id}/cancel").status == 200
    wait_for(lambda: stage.look(lambda store: store.live_jobs(0)) == [])


def test_the_next_job_is_taken_as_soon_as_the_last_one_reads_as_ended(stage: Stage) -> None:
    caller = stage.caller("turn-taker")
    for turn in range(TURNS):
        submitted = caller.submit([f"{stage.pages.url}/turn/{turn}"])
        assert submitted.status == 202, (turn, submitted.body)
        job_id = submitted.json()["id"]
        while (job := caller.job(job_id))["status"] not in ENDED:
            pass  # no wait: the first read that says so is the one that counts
        assert job["status"] == "done"
    assert stage.look(lambda store: store.caller_live("acme/turn-taker")) == []


def test_a_cancelled_job_gives_its_slot_back_at_once(stage: Stage) -> None:
    caller = stage.caller("canceller")
    for _ in range(5):
        submitted = caller.submit([held_page(stage)])
        assert submitted.status == 202, submitted.body
        refused = caller.submit([f"{stage.pages.url}/too-early"])
        assert (refused.status, refused.json()["code"]) == (429, "caller_busy")
        assert int(refused.headers["retry-after"]) > 0
        assert caller.ask("POST", f"/v1/jobs/{submitted.json()['id']}/cancel").json()["status"] == "cancelled"


def test_a_race_of_the_same_work_makes_one_job(stage: Stage, winners: list[tuple[Caller, str]]) -> None:
    caller = stage.caller("racer-same")
    page = held_page(stage)
    replies = race([lambda: caller.submit([page])] * RACERS)
    (job_id,) = {reply.json()["id"] for reply in replies}
    winners.append((caller, job_id))
    assert Counter(reply.status for reply in replies) == {202: 1, 200: RACERS - 1}
    assert {reply.json()["reused"] for reply in replies if reply.status == 200} == {True}
    assert stage.look(lambda store: store.live_jobs(0)) == [job_id]
    assert len(caller.ask("GET", "/v1/jobs").json()["jobs"]) == 1


def test_a_race_of_different_work_fills_the_cap_exactly(stage: Stage, winners: list[tuple[Caller, str]]) -> None:
    callers = [stage.caller(f"racer-{number}") for number in range(RACERS)]
    pages = [held_page(stage) for _ in callers]
    replies = race(
        [lambda caller=caller, page=page: caller.submit([page]) for caller, page in zip(callers, pages, strict=True)]
    )
    winners += [(c, r.json()["id"]) for c, r in zip(callers, replies, strict=True) if r.status == 202]
    assert Counter(reply.status for reply in replies) == {202: JOBS_TOTAL, 503: RACERS - JOBS_TOTAL}
    assert {reply.json()["code"] for reply in replies if reply.status == 503} == {"jobs_busy"}
    assert all(int(reply.headers["retry-after"]) > 0 for reply in replies if reply.status == 503)
    assert len(stage.look(lambda store: store.live_jobs(0))) == JOBS_TOTAL
    for caller, reply in zip(callers, replies, strict=True):
        assert len(caller.ask("GET", "/v1/jobs").json()["jobs"]) == (reply.status == 202)


def test_a_race_of_one_caller_fills_its_cap_exactly(stage: Stage, winners: list[tuple[Caller, str]]) -> None:
    caller = stage.caller("racer-alone", jobs_per_caller=3)
    pages = [held_page(stage) for _ in range(RACERS)]
    replies = race([lambda page=page: caller.submit([page]) for page in pages])  # type: ignore[misc]
    winners += [(caller, reply.json()["id"]) for reply in replies if reply.status == 202]
    assert Counter(reply.status for reply in replies) == {202: 3, 429: RACERS - 3}
    assert {reply.json()["code"] for reply in replies if reply.status == 429} == {"caller_busy"}
