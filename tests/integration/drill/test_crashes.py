"""Workers are killed in the middle of their batches, again and again, and every target ends once all the same."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sift.jobs import MAX_CLAIMS, SEGMENT
from tests.integration.drill.stage import ENDED, Caller, Stage, open_stage
from tests.integration.local.project import wait_for

TARGETS = 500
#: A worker is killed whenever so many more targets have ended.
KILL_EVERY = 50
#: What takes minutes on AWS takes seconds here. A lease may end under a worker that is only slow: that is a drill too.
EDITS = {
    'LEASE_SECONDS: "100"': 'LEASE_SECONDS: "2"',
    "VisibilityTimeout: 540": "VisibilityTimeout: 3",
    'VISIBILITY_SECONDS: "540"': 'VISIBILITY_SECONDS: "3"',
}
QUIET_MS = 3_000
SWEEPS_A_MINUTE = 30


def kill(stage: Stage, function: str) -> int | None:
    """Kill an execution environment as the machine under it might die, a busy one if there is one."""
    for pid in stage.stack.environments()[function]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
            return pid
    return None


def kill_through(stage: Stage, caller: Caller, job_id: str) -> dict[str, list[int]]:
    """Kill until the job has ended; what was killed, by function."""
    killed: dict[str, list[int]] = {"FetchFunction": [], "ApiFunction": [], "SweepFunction": []}
    due = KILL_EVERY // 2
    limit = time.monotonic() + 500
    while (job := caller.job(job_id, wait=1))["status"] not in ENDED:
        assert time.monotonic() < limit, job
        ended = job["counts"]["done"] + job["counts"]["failed"]
        if ended < due:
            continue
        due = ended + KILL_EVERY
        victims = ["FetchFunction"]
        if ended > TARGETS // 3:
            stage.stack.restart_pollers()
            victims += [name for name in ("ApiFunction", "SweepFunction") if not killed[name]]
        for name in victims:
            if name == "ApiFunction":
                # In the middle of a request, which the caller then asks again.
                threading.Thread(target=caller.job, args=(job_id, 3), daemon=True).start()
                time.sleep(0.3)
            pid = kill(stage, name)
            killed[name] += [] if pid is None else [pid]
    return killed


def check_every_target_ended_once(stage: Stage, caller: Caller, job_id: str) -> Counter[int]:
    """The slots, the outcomes and the counters agree; how often targets were tried."""
    slots = caller.slots(job_id)
    assert [slot["index"] for slot in slots] == list(range(TARGETS))
    for slot in slots:
        crashed = slot["status"] == "failed" and slot["error"]["code"] == "crashed"
        assert slot["status"] == "done" or (crashed and slot["attempts"] > MAX_CLAIMS), slot
    outcomes: dict[int, Any] = {}
    for number in range(-(-TARGETS // SEGMENT)):
        first = number * SEGMENT
        outcomes |= stage.look(lambda s, n=number, f=first: s.get_segment_outcomes(job_id, n, f, f + SEGMENT - 1))
    assert sorted(outcomes) == list(range(TARGETS))
    by_status = Counter(outcome.status for outcome in outcomes.values())
    state = stage.look(lambda store: store.get_state(job_id))
    assert (state.released, state.flight) == (TARGETS, {})
    assert (state.done, state.failed) == (by_status["done"], by_status["failed"])
    assert state.bytes == sum(outcome.size for outcome in outcomes.values())
    counts = caller.job(job_id)["counts"]
    assert (counts["done"], counts["failed"]) == (state.done, state.failed)
    assert counts["pending"] == counts["running"] == counts["cancelled"] == 0
    return Counter(slot["attempts"] for slot in slots)


def test_every_target_ends_once_whoever_is_killed(tmp_path: Path) -> None:
    parameters = {"TargetsPerJob": str(TARGETS)}
    with open_stage(tmp_path, EDITS, parameters, QUIET_MS, schedule_speed=SWEEPS_A_MINUTE) as stage:
        caller = stage.caller("ann")
        submitted = caller.submit([f"{stage.pages.url}/{number}" for number in range(TARGETS)])
        assert submitted.status == 202, submitted.body
        job_id = submitted.json()["id"]
        killed = kill_through(stage, caller, job_id)
        assert len(killed["FetchFunction"]) >= 5
        assert len(killed["ApiFunction"]) == len(killed["SweepFunction"]) == 1
        attempts = check_every_target_ended_once(stage, caller, job_id)
        assert sum(attempts.values()) > attempts[1], "somebody was killed in the middle of a target"

        # Nothing is left: no slot is held, the end is announced, the sweeper lives.
        wait_for(lambda: stage.look(lambda store: store.outbox(0)) == [])
        assert stage.look(lambda store: store.live_jobs(0)) == []
        assert stage.look(lambda store: store.caller_live("acme/ann")) == []
        wait_for(lambda: set(stage.stack.environments()["SweepFunction"]) - set(killed["SweepFunction"]))
        dead = {"QueueUrl": stage.stack.physical("FetchDeadLetterQueue"), "AttributeNames": ["All"]}
        attributes = stage.stack.client("sqs").get_queue_attributes(**dead)["Attributes"]
        assert attributes["ApproximateNumberOfMessages"] == "0"
        print(f"killed { ({name: len(pids) for name, pids in killed.items()}) }, attempts {dict(attempts)}")
