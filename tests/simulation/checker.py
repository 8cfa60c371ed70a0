"""Looks at the raw table after every step of the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sift.jobs import State
from sift.store.ports import CapReached
from tests.simulation.files import Files
from tests.simulation.invariants import (
    ACTIVE,
    ENDED,
    LIVE,
    broken,
    check_born,
    check_course,
    check_state,
    left_to_do,
)
from tests.simulation.ledger import Job, Ledger, RequestKey
from tests.simulation.processes import Effect, Invocation
from tests.simulation.scenario import PACE
from tests.simulation.site import Target, Visit

if TYPE_CHECKING:
    from tests.simulation.world import World


#: How a fetch or a request ends that is made again: busy, cut off, aborted, or with less than its time.
NOT_THE_END = {"TargetBusy", "TargetCut", "CancelledError", "Late"}
#: Two seconds, and what calls take in this world.
ABORT_SECONDS = 2.5


class Checker:
    """`step` is called after each effect; the rest when something happens that the table does not show."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.ledger = Ledger()
        self.files = Files(world)
        self._seen: dict[str, State] = {}
        #: Since when jobs do not go on.
        self._stopped: dict[str, float] = {}

    # after each effect

    def step(self, effect: Effect, answer: Any) -> None:
        """All that is stored was changed by this effect, if it was changed since the last step."""
        if not effect.reads:
            self._births(effect)
            self._states(effect)
            self._sets()
            self._records()
            self.files.step()
        self._calls(effect, answer)

    def _states(self, effect: Effect) -> None:
        view = self._world.backend.view()
        now, skew = self._world.now_ms(), 2 * self._world.scenario.skew_ms
        for job_id, state in view.states.items():
            old = self._seen.get(job_id)
            if old is state or old == state:
                continue
            if not self.ledger.jobs[job_id].deleting:
                check_state(state, view.outcomes)
            if old is None:
                check_born(view.metas[job_id], state)
            else:
                check_course(view.metas[job_id].kind, old, state, now, skew)
                self._entries(old, state, effect.invocation)
            if state.status in ENDED and self.ledger.jobs[job_id].ended_as is None:
                self.ledger.jobs[job_id].ended_as = state.status
            if state.status in ACTIVE:
                self._stopped.pop(job_id, None)
            else:
                self._stopped.setdefault(job_id, self._world.loop.time())
            self._seen[job_id] = state
        for job_id in self._seen.keys() - view.states.keys():
            if not self.ledger.jobs[job_id].deleting:
                broken("1 one outcome", f"{job_id} is gone, and nobody deleted it")
            del self._seen[job_id]

    def _births(self, effect: Effect) -> None:
        if effect.name != "store.commit":
            return
        submission = effect.args[0]
        job_id = submission.meta.job_id
        if job_id in self._world.backend.view().metas and job_id not in self.ledger.jobs:
            key, urls = self._world.requests[effect.invocation]
            urls = urls or self._world.backend.urls_of(submission)
            self.ledger.jobs[job_id] = Job(submission.meta, urls, None if submission.idempotency is None else key)

    def _entries(self, old: State, new: State, invocation: Invocation) -> None:
        view, now, skew = self._world.backend.view(), self._world.now_ms(), 2 * self._world.scenario.skew_ms
        job_id = new.job_id
        for index, entry in old.flight.items():
            target = (job_id, index)
            visits = self._world.site.visits.get(target, [])
            if index not in new.flight and self.ledger.jobs[job_id].deleting:
                continue  # its outcome may be gone already
            if index not in new.flight:
                urls = self.ledger.jobs[job_id].urls
                self.ledger.finished(target, old, new, view.outcomes[target], visits, urls[index])
            elif new.flight[index] != entry:
                moment = self._world.loop.time()
                self.ledger.changed(target, old, new, invocation, visits, now, skew, moment)
        aborted = old.status == "cancelling" and new.status == "cancelled" and now + skew < new.deadline_at
        if (new.status == "paused" and old.status != "paused") or aborted:
            for index, entry in new.flight.items():
                if self.ledger.holder((job_id, index), entry) is not None:
                    broken("pause", f"{job_id} is {new.status} while {index} runs")
        if old.status == "paused" and new.status == "queued":
            self.ledger.jobs[job_id].resumed = self._world.loop.time()
            self.ledger.jobs[job_id].resumed_by = invocation
            self.ledger.jobs[job_id].out = frozenset(old.flight)

    def _sets(self) -> None:
        view, scenario = self._world.backend.view(), self._world.scenario
        live = {job_id for job_id, state in view.states.items() if state.status in LIVE}
        if set().union(*view.live.values()) != live:
            broken("3 caps", f"live are {live}, counted are {view.live}")
        if len(live) > scenario.jobs_total:
            broken("3 caps", f"{len(live)} jobs are live, the cap is {scenario.jobs_total}")
        by_caller: dict[str, set[str]] = {}
        for job_id in live:
            by_caller.setdefault(view.metas[job_id].caller, set()).add(job_id)
        if by_caller != {caller: jobs for caller, jobs in view.callers.items() if jobs}:
            broken("3 caps", f"live by caller are {by_caller}, counted are {view.callers}")
        if any(len(jobs) > scenario.jobs_per_caller for jobs in by_caller.values()):
            broken("3 caps", f"a caller has more than {scenario.jobs_per_caller} live jobs: {by_caller}")
        waiting = set().union(*view.outboxes.values())
        for job_id, job in self.ledger.jobs.items():
            if job.ended_as and not job.announced and job_id not in waiting:
                broken("5 announced", f"{job_id} has ended, is not announced, and is not in the outbox")
            if job.ended_as and job.tells_its_end and not job.noticed and job_id not in waiting:
                broken("webhooks", f"{job_id} has ended, no notice of it is on its way, and it is not in the outbox")

    def _records(self) -> None:
        view = self._world.backend.view()
        for job_id, job in self.ledger.jobs.items():
            key = job.meta.idempotency
            if key is not None and self.stands(job_id):
                record = view.idempotency.get(key)
                if record is None or record.job_id != job_id:
                    broken("4 idempotency", f"{job_id} stands for its work, and the record is {record}")
        for target, outcome in self.ledger.final.items():
            stored = view.outcomes.get(target)
            if stored is not outcome and stored != outcome and not self.ledger.jobs[target[0]].deleting:
                broken("1 one outcome", f"the outcome of {target} was replaced by {stored}")

    def _calls(self, effect: Effect, answer: Any) -> None:
        """What only the call itself shows."""
        view, invocation = self._world.backend.view(), effect.invocation
        match effect.name:
            case "bus.publish":
                detail = effect.args[1]
                state = view.states.get(detail["job_id"])
                job = self.ledger.jobs[detail["job_id"]]
                if state is not None and (state.status not in ENDED or detail["status"] != state.status):
                    broken("5 announced", f"announced as {detail['status']}, it is {state.status}")
                job.announced += 1
            case "notices.send":
                for notice in effect.args[0]:
                    self.ledger.jobs[notice.job_id].noticed += notice.event == "job.ended"
            case "queue.send":
                for message in effect.args[0]:
                    target = (message.job_id, message.index)
                    self.ledger.sent(target, view.states.get(target[0]), invocation, self._world.loop.time())
            case "store.commit" if answer == CapReached("caller"):
                caller = effect.args[0].meta.caller
                if len(view.callers.get(caller, ())) < self._world.scenario.jobs_per_caller:
                    broken("3 caps", f"{caller} is refused for its cap, and has {view.callers.get(caller)}")
            case "store.put_outcome" if answer is True:
                target = (effect.args[0], effect.args[1].index)
                self.ledger.stored.setdefault(target, []).append((self._world.loop.time(), effect.args[1]))
            case "store.claim":
                state, index = view.states.get(effect.args[0]), effect.args[1]
                if state is not None and not answer.ok:
                    entry = state.flight.get(index)
                    if entry is None or state.status not in ACTIVE:
                        invocation.left[state.job_id] = state, left_to_do(state, self._world.now_ms(), False)
                    elif self._world.scenario.clocks_agree and not entry.claims and not invocation.faulty:
                        sent_late = entry.busy_since is None and entry.until > effect.args[3]
                        if sent_late and not self.ledger.claims.get((state.job_id, index)):
                            broken("margin", f"{index} of {state.job_id} is free, and its claim is refused: {entry}")
            case "store.finish":
                state = view.states.get(effect.args[0])
                if state is not None and answer.ok:
                    invocation.left[state.job_id] = state, left_to_do(state, self._world.now_ms(), True)

    # what a job stands for

    def stands(self, job_id: str, margin_ms: int = 0) -> bool:
        """Whether the same work is to be answered with this job, as far as the table tells."""
        job, state = self.ledger.jobs[job_id], self._world.backend.view().states.get(job_id)
        if state is None or job.deleting or job.key is None:
            return False
        if state.expires_at is not None and state.expires_at * 1000 <= self._world.now_ms() + 10_000 + margin_ms:
            return False
        return state.status not in {"failed", "cancelled"} or job.meta.explicit_key

    def standing(self, key: RequestKey) -> str | None:
        """The job that stands for a request."""
        found = [job_id for job_id, job in self.ledger.jobs.items() if job.key == key and self.stands(job_id)]
        if len(found) > 1:
            broken("4 idempotency", f"several jobs stand for {key}: {found}")
        return found[0] if found else None

    # what the table does not show

    def fetching(self, target: Target, url: str, visit: Visit, earlier: list[Visit]) -> None:
        """A fetch begins."""
        if url != self.ledger.jobs[target[0]].urls[target[1]]:
            broken("1 one outcome", f"{target} is fetched from {url}")
        for other in earlier:
            if other.ended is None and other.invocation.owns and visit.invocation.owns:
                broken("twice", f"{target} is being fetched by {other.invocation.process.name} too")
            to_the_end = other.result is not None and other.result not in NOT_THE_END
            if to_the_end and not other.invocation.faulty and not visit.invocation.faulty:
                broken("twice", f"{target} was fetched to its end by {other.invocation.process.name}, without a fault")
        if self._world.backend.view().metas[target[0]].kind == "inference":
            self._sent_again(target, visit)

    def _sent_again(self, target: Target, visit: Visit) -> None:
        """A request whose answer was stored before this claim is not sent again, whatever died in between."""
        claims = [claim for claim in self.ledger.claims[target] if claim.lease == visit.lease]
        stored = self.ledger.stored.get(target)
        if stored and claims and stored[0][0] < claims[-1].at:
            broken("sent again", f"{target} is sent by {visit.invocation.process.name}, and its answer is stored")

    def fetched(self, target: Target, visit: Visit) -> None:
        """A fetch is over. A request is aborted within two seconds when its job does not go on."""
        state = self._world.backend.view().states.get(target[0])
        meta = self._world.backend.view().metas.get(target[0])
        stopped = self._stopped.get(target[0])
        if state is None or meta is None or meta.kind == "fetch" or stopped is None or visit.ended is None:
            return
        if visit.ended - max(stopped, visit.began) > ABORT_SECONDS and not visit.invocation.faulty:
            broken("abort", f"{target} went on for {visit.ended - stopped:.1f} s after its job was {state.status}")

    def acknowledged(self, invocation: Invocation, target: Target) -> None:
        """A message is deleted: it was not the last of a target that is still out."""
        state = self._world.backend.view().states.get(target[0])
        if state is None or state.status not in ACTIVE or target[1] not in state.flight or invocation.faulty:
            return
        resumed = self.ledger.jobs[target[0]].resumed >= invocation.began
        if resumed or target in self.ledger.lost_messages or self._world.backend.copies(target):
            return
        broken("messages", f"the last message of {target} is acknowledged, and it is out: {state.flight[target[1]]}")

    def invoked(self, invocation: Invocation, jobs: set[str]) -> None:
        """A batch is done; these jobs had messages that were acknowledged. Nothing may be left undone."""
        view = self._world.backend.view()
        for job_id in sorted(jobs & invocation.left.keys()):
            left, what = invocation.left[job_id]
            if what and not invocation.faulty and view.states.get(job_id) == left:
                broken("advance", f"{invocation.process.name} leaves {job_id} without {what}: {left}")

    def resumed(self, invocation: Invocation, job_id: str) -> None:
        """A resume was answered, without a fault: what is out is on the queue."""
        state = self._world.backend.view().states.get(job_id)
        if invocation.faulty or state is None or state.status not in ACTIVE or not self._world.scenario.clocks_agree:
            return
        if self.ledger.jobs[job_id].resumed_by is not invocation:
            return  # paused and resumed again in between: the messages are that one's to send
        for index in sorted(state.flight.keys() & self.ledger.jobs[job_id].out):
            target, entry = (job_id, index), state.flight[index]
            if entry.until + 10_000 > self._world.now_ms() and entry.claims:
                continue
            if not self._world.backend.copies(target) and target not in self.ledger.lost_messages:
                broken("resume", f"{index} of {job_id} is out, and has no message")

    def at_the_end(self) -> None:
        """Everything has ended, and every repair is through."""
        view = self._world.backend.view()
        for job_id, job in self.ledger.jobs.items():
            if job.ended_as is None or not job.announced:
                broken("7 liveness", f"{job_id}: ended as {job.ended_as}, announced {job.announced} times")
            state = view.states.get(job_id)
            if state is None:
                continue
            if state.status != "cancelled" and state.error != "deadline":
                missing = [index for index in range(state.total) if (job_id, index) not in view.outcomes]
                if missing or state.done + state.failed != state.total:
                    broken("1 one outcome", f"{job_id} has lost {missing}")
            record = view.idempotency.get(job.meta.idempotency or "")
            released = state.status in {"failed", "cancelled"} and not job.meta.explicit_key
            if record is not None and record.job_id == job_id and released:
                broken("4 idempotency", f"{job_id} has no result, and holds its record")
        left = {
            name: sets
            for name in ("live", "callers", "outboxes", "removing")
            if any((sets := getattr(view, name)).values())
        }
        if left:
            broken("3 caps", f"all jobs have ended, and there is still {left}")
        self._blobs()
        self._world.receivers.at_the_end()
        self._pace()

    def _pace(self) -> None:
        """The site was asked no more often, and by no more at once, than it may be; where nothing held up those who had
        their turn, and no clock was wrong."""
        scenario = self._world.scenario
        if not scenario.paced or scenario.rates or scenario.skew_ms:
            return
        begun = self._world.site.begun
        most = max((count for _, count in begun), default=0)
        if most > PACE.concurrency:
            broken("pace", f"{most} requests at once")
        starts = sorted(moment for moment, _ in begun)
        for first, later in zip(starts, starts[20:], strict=False):
            if later - first < 20 / PACE.rate - 1:
                broken("pace", f"more than 20 requests in {later - first:.1f} s")

    def _blobs(self) -> None:
        """A content in the bucket is the one that was counted."""
        view = self._world.backend.view()
        for target, outcome in view.outcomes.items():
            if not (outcome.status == "done" or outcome.size) or target not in self.ledger.final:
                continue
            if target[0] not in view.states:
                continue  # removed; a worker that outlived its lease, as none does on Lambda, stored it afterwards
            body = outcome.content if outcome.blob is None else self._world.backend.blob(outcome.blob)
            lease = self.ledger.origin(target, outcome)
            mine = [v for v in self._world.site.visits[target] if v.lease == lease and v.result == "Content"]
            prefix = f"{self.ledger.jobs[target[0]].urls[target[1]]}#{mine[-1].serial}".encode()
            if body is None or len(body) != outcome.size or body[: len(prefix)] != prefix:
                broken("1 one outcome", f"the content of {target} is not that of the fetch that was counted")
