"""What the simulator has seen happen, kept apart from what the code says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sift.jobs import MAX_CLAIMS, Flight, Meta, State
from sift.store.ports import Outcome
from tests.simulation.invariants import ACTIVE, ENDED, broken
from tests.simulation.processes import Invocation
from tests.simulation.site import ALWAYS, GIVEN_UP, Target, Visit, kind_of

#: A busy target is tried for 10 minutes; a try of its last second may take as long as a function runs.
BUSY_MS = 600_000 + 100_000
#: A target that is never claimed is sent again after 3 minutes at the earliest.
RESEND_SECONDS = 100.0

#: Whose request it is: the caller, and its own key or its targets.
RequestKey = tuple[str, str | tuple[str, ...]]


@dataclass
class Job:
    """What was submitted, and what became of it."""

    meta: Meta
    urls: tuple[str, ...]
    key: RequestKey | None
    #: How many deletes may have taken effect.
    deleting: int = 0
    ended_as: str | None = None
    announced: int = 0
    #: How often its end was put on the queue of notices.
    noticed: int = 0
    resumed: float = -1.0
    resumed_by: Invocation | None = None
    #: What was out when it was resumed.
    out: frozenset[int] = frozenset()

    @property
    def tells_its_end(self) -> bool:
        """Whether a webhook wants to know of its end."""
        return self.meta.webhook is not None and "job.ended" in self.meta.webhook["events"]


@dataclass
class Claim:
    """A claim that has neither finished nor been handed back."""

    invocation: Invocation
    lease: int
    at: float = 0.0
    #: It gave its lease up, for an answer was cut off.
    cut: bool = False


@dataclass
class Ledger:
    """Jobs, claims and messages."""

    jobs: dict[str, Job] = field(default_factory=dict)
    claims: dict[Target, list[Claim]] = field(default_factory=dict)
    lost_messages: set[Target] = field(default_factory=set)
    final: dict[Target, Outcome] = field(default_factory=dict)
    swept: dict[Target, tuple[float, Invocation]] = field(default_factory=dict)
    #: What was stored of each target, and when, whether it was counted or not.
    stored: dict[Target, list[tuple[float, Outcome]]] = field(default_factory=dict)

    def holder(self, target: Target, entry: Flight) -> Claim | None:
        """Who works on it now, with every right."""
        for claim in self.claims.get(target, ()):
            if claim.lease == entry.until and claim.invocation.owns:
                return claim
        return None

    # changes of one entry

    def changed(
        self,
        target: Target,
        old: State,
        new: State,
        invocation: Invocation,
        visits: list[Visit],
        now_ms: int,
        skew_ms: int,
        moment: float,
    ) -> None:
        """The entry of a target is in both states, and not the same."""
        before, after = old.flight[target[1]], new.flight[target[1]]
        holder = self.holder(target, before)
        what = f"{target}: {before} -> {after}"
        if before.busy_since is not None and after.busy_since != before.busy_since:
            broken("busy", f"it is forgotten since when it is busy: {what}")
        if after.claims == before.claims + 1:
            if old.status not in ACTIVE:
                broken("5 terminal status" if old.status in ENDED else "pause", f"claimed while {old.status}: {what}")
            if holder is not None:
                broken("twice", f"claimed while {holder.invocation.process.name} works on it: {what}")
            if before.until > now_ms + skew_ms:
                broken("twice", f"claimed before its lease ended: {what}")
            self.claims.setdefault(target, []).append(Claim(invocation, after.until, moment))
        elif after.claims == before.claims - 1 or (before.claims and not after.claims and after.busy_since is not None):
            mine = [claim for claim in self.claims[target] if claim.lease == before.until]
            if not mine:
                broken("twice", f"handed back by one that did not hold it: {what}")
            self.claims[target].remove(mine[0])
            was_busy = any(visit.lease == before.until and visit.result == "TargetBusy" for visit in visits)
            too_long = after.busy_since is None or now_ms - after.busy_since > BUSY_MS
            if was_busy and too_long and not invocation.process.zombie:
                broken("busy", f"busy for more than 10 minutes: {what}")
        elif after.claims != before.claims:
            broken("crash count", what)
        elif any(visit.lease == before.until and visit.result == "TargetCut" for visit in visits):
            self._cut(target, before, after, what)
        elif holder is not None:
            broken("twice", f"taken from {holder.invocation.process.name}, which works on it: {what}")
        if after.until > now_ms + (300_000 if after.claims else BUSY_MS):
            broken("lease", f"held for minutes: {what}")

    def _cut(self, target: Target, before: Flight, after: Flight, what: str) -> None:
        """The claim of an answer that was cut off stays charged; or it is the sweeper that touches it later."""
        for claim in self.claims[target]:
            if claim.lease == before.until:
                claim.cut = True
        if after.claims < 1:
            broken("crash count", f"an answer that was cut off is not charged: {what}")

    def origin(self, target: Target, outcome: Outcome) -> int:
        """The lease under which an outcome was first stored: a later claim may have found it there, and counted it."""
        for _, stored in self.stored.get(target, ()):
            if (stored.document, stored.content, stored.blob) == (outcome.document, outcome.content, outcome.blob):
                return stored.lease
        return outcome.lease

    def finished(self, target: Target, old: State, new: State, outcome: Outcome, visits: list[Visit], url: str) -> None:
        """A target was counted: its outcome is the one that its holder stored, and the right one."""
        before = old.flight[target[1]]
        if outcome.lease != before.until:
            broken("1 one outcome", f"{target} is counted under the lease {before.until}; {outcome.lease} stored it")
        document = outcome.document
        if document.get("url", document.get("path")) != url:
            broken("1 one outcome", f"{target} is {url}, and its outcome is {document}")
        self.final[target] = outcome
        lease = self.origin(target, outcome)
        mine = [visit for visit in visits if visit.lease == lease]
        error = outcome.document["error"]
        self._judge(target, old, outcome, mine[-1] if mine else None, visits, error and error["code"], url)

    def _judge(
        self, target: Target, old: State, outcome: Outcome, mine: Visit | None, visits: list[Visit], code: Any, url: str
    ) -> None:
        kind, times = kind_of(url)
        result = mine.result if mine else None
        if outcome.status == "done":
            if result != "Content" or mine is None or outcome.size != mine.size:
                broken("1 one outcome", f"{target} is done, and its fetch was {mine}")
            if kind in {"fail", "hang", "bug", "error"} or (
                kind in {"busy", "later", "crash", "cut"} and times == ALWAYS
            ):
                broken("1 one outcome", f"{target} is {kind}, and done")
            return
        match code:
            case "crashed":
                charged = [claim for claim in self.claims[target] if claim.lease != outcome.lease]
                crashes = sum(claim.invocation.faulty or claim.cut for claim in charged)
                if result != "ZeroDivisionError" and crashes < MAX_CLAIMS:
                    broken("crash count", f"{target} is given up after {crashes} crashes")
            case "busy":
                busy = [visit for visit in visits if visit.result in {"TargetBusy", GIVEN_UP}]
                if result not in {"TargetBusy", GIVEN_UP}:
                    broken("busy", f"{target} failed as busy; its last fetch was {mine}")
                first = min(visit.ended or 0 for visit in busy)  # one that began earlier may have frozen
                if kind == "busy" and (mine is None or (mine.ended or 0) - first < 500):
                    broken("busy", f"{target} is given up within 10 minutes")
            case "over_budget" if mine is None and url.startswith("/"):  # a request is not sent in vain
                if old.bytes < old.budget:
                    broken("budget", f"{target} is not sent, and {old.bytes} bytes of {old.budget} are stored")
            case "over_budget":
                if result != "Content" or mine is None or old.bytes + mine.size <= old.budget:
                    broken("budget", f"{target}: {old.bytes} bytes of {old.budget} are stored, its fetch was {mine}")
            case "http_error" if kind == "error":
                if result != "Content" or mine is None or outcome.size != mine.size:
                    broken("1 one outcome", f"{target} was answered with an error, and its fetch was {mine}")
            case "connect_failed":
                charged = [claim for claim in self.claims[target] if claim.lease != outcome.lease]
                if result != "TargetCut" or sum(one.invocation.faulty or one.cut for one in charged) < MAX_CLAIMS - 1:
                    broken("crash count", f"{target} is given up as cut off after {charged}, its fetch was {mine}")
            case _:
                if result != "TargetFailed":
                    broken("1 one outcome", f"{target} failed as {code}; its fetch was {mine}")

    # messages

    def sent(self, target: Target, state: State | None, invocation: Invocation, now: float) -> None:
        """A message of a target was put on the queue."""
        if state is not None and target[1] >= state.released:
            broken("window", f"{target} is sent before it is released")
        if not invocation.process.name.startswith("sweeper"):
            return
        before = self.swept.get(target)
        if before is not None and now - before[0] < RESEND_SECONDS and not (invocation.faulty or before[1].faulty):
            broken("resend", f"{target} is sent by two sweeps within {now - before[0]:.0f} s")
        self.swept[target] = now, invocation
