"""The waits of fairness.py on a local stack: real functions in processes of their own, real time, tiny pages."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.integration.drill.stage import Caller, Stage, open_stage


@dataclass(frozen=True)
class Wait:
    """What one small job met; `ahead` and `meanwhile` as of `fairness.Course`, its submission being the moment at
    which its caller has the answer. `large_left`: targets of the large job that had not finished when it ended."""

    ahead: int
    meanwhile: int
    large_left: int


def measure(large: int, smalls: int, size: int, folder: Path) -> list[Wait]:
    """One large job, and the small ones of as many other callers spread over its course."""
    parameters = {"TargetsPerJob": str(large), "JobsTotal": str(1 + smalls), "MaxJobBytes": "1073741824"}
    with open_stage(folder, {}, parameters) as stage:
        owner = stage.caller("large")
        submitted = owner.submit([f"{stage.pages.url}/0/{number}" for number in range(large)])
        if submitted.status != 202:
            raise AssertionError(submitted.body)
        large_id = submitted.json()["id"]
        moments, made = {}, {}
        for small in range(1, smalls + 1):
            while owner.job(large_id)["counts"]["done"] < large * (2 * small - 1) // (2 * smalls + 1):
                time.sleep(0.1)
            caller = stage.caller(f"small-{small}")
            answer = caller.submit([f"{stage.pages.url}/{small}/{number}" for number in range(size)])
            moments[small] = time.time()
            if answer.status != 202:
                raise AssertionError(answer.body)
            made[small] = (caller, answer.json()["id"])
        ends = [_moment(slot["finished_at"]) for slot in _ended_slots(owner, large_id)]
        return [_wait(stage, ends, small, moments[small], *made[small]) for small in made]


def _wait(stage: Stage, ends: list[float], small: int, submitted: float, caller: Caller, job_id: str) -> Wait:
    ended = max(_moment(slot["finished_at"]) for slot in _ended_slots(caller, job_id))
    last = max(moment for moment, path in stage.pages.asked if path.startswith(f"/{small}/"))
    begun = sum(1 for moment, path in stage.pages.asked if path.startswith("/0/") and moment < last)
    return Wait(
        ahead=begun - sum(1 for moment in ends if moment <= submitted),
        meanwhile=sum(1 for moment in ends if submitted < moment <= ended),
        large_left=sum(1 for moment in ends if moment > ended),
    )


def _ended_slots(caller: Caller, job_id: str) -> list[dict[str, str]]:
    job = caller.end(job_id, seconds=3_600)
    if job["status"] != "done":
        raise AssertionError(job)
    return caller.slots(job_id)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for a stack, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="sift-fairness-") as folder:
        yield Path(folder)
