"""Read jobs and their targets; nothing here writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sift import ids
from sift.blobs.ports import Blobs
from sift.clock import Clock
from sift.errors import Forbidden, NotFound
from sift.identity import Identity
from sift.jobs import ENDED, SEGMENT, Meta, State
from sift.services.segments import read_segment
from sift.services.slots import Slot
from sift.specs import AnySpec, Spec
from sift.store.ports import Outcome, Store

if TYPE_CHECKING:
    from sift.webhooks import Delivery

#: How often a held status read looks again, in seconds.
POLL_SECONDS = 0.5
#: A page of slots ends when so many bytes of contents came along (at most those of a segment more): an answer holds
#: less than 6 MB, and what would not fit is not read.
PAGE_CONTENT_BYTES = 5_000_000
#: How many jobs one page of a filtered list looks at.
LIST_LOOKS = 1_000
#: With a filter, jobs are looked at so many at a time after the first page; BatchGetItem takes the items of 50.
LIST_STEP = 100


@dataclass(frozen=True, slots=True)
class Page:
    """Some slots in submit order; `next_index` is where to go on, None at the end."""

    slots: Sequence[Slot] = field(default_factory=list)
    next_index: int | None = None


@dataclass(frozen=True, slots=True)
class Whose:
    """Jobs of one caller, of one tenant (no `actor`), or of everybody (neither)."""

    tenant: str | None = None
    actor: str | None = None


class Reader:
    """Reads on behalf of one caller at a time: what belongs to another reads as absent, but to an admin of its
    tenant. An admin changes nothing of others."""

    def __init__(self, store: Store, blobs: Blobs, clock: Clock) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock

    async def job(self, identity: Identity, job_id: str) -> tuple[Meta, State]:
        """A job of the caller's own, in one read: what every change starts with. Raises NotFound, and Forbidden to an
        admin who may only read it, and to a key without the scope of its kind."""
        meta, state = await self.look(identity, job_id)
        if meta.caller != identity.caller:
            raise Forbidden(
                "forbidden",
                "The job is another caller's; an admin may only read it.",
                "Use a key of its tenant and actor.",
            )
        identity.require(meta.kind)
        return meta, state

    async def look(self, identity: Identity, job_id: str) -> tuple[Meta, State]:
        """A job that the caller may read, in one read. Raises NotFound."""
        found = await self._store.get_job(job_id) if ids.is_job_id(job_id) else None
        if found is None or not _may_read(identity, found[0]) or found[1].expired(self._clock.now_ms()):
            raise NotFound(
                "not_found",
                "There is no such job.",
                "Check the id; an ended job is kept until its expires_at.",
            )
        return found

    async def jobs(
        self,
        identity: Identity,
        before: str | None,
        limit: int,
        accept: Callable[[Meta, State], bool],
        whose: Whose | None = None,
    ) -> tuple[list[tuple[Meta, State]], str | None]:
        """Up to `limit` jobs of the caller, newest first, older than `before`, and the id to go on before. An admin
        may say `whose`. Raises Forbidden to everybody else who does.

        One call looks at no more than `LIST_LOOKS` jobs: with a filter that few pass, a page may be short, even
        empty, and still have a next one.
        """
        if whose is not None and not identity.is_admin_of(whose.tenant):
            raise Forbidden(
                "forbidden",
                f"This needs the scope admin{f' or admin:{whose.tenant}' if whose.tenant else ''}.",
                "Without tenant, actor and all, this lists your own jobs.",
            )
        taken: list[tuple[Meta, State]] = []
        looked, step = 0, limit
        while True:
            now = self._clock.now_ms()
            ids_, more = await self._list(identity, whose, now, before, step)
            for meta, state in await self._store.get_jobs(ids_):
                if len(taken) == limit:
                    return taken, taken[-1][0].job_id
                if not state.expired(now) and accept(meta, state):
                    taken.append((meta, state))
            looked += step
            step = max(limit, LIST_STEP)  # a filter that drops many would take a request for each few
            if more is None or len(taken) == limit or looked >= LIST_LOOKS:
                return taken, more
            before = more

    async def _list(
        self, identity: Identity, whose: Whose | None, now_ms: int, before: str | None, limit: int
    ) -> tuple[Sequence[str], str | None]:
        if whose is None:
            return await self._store.list_jobs(identity.caller, now_ms, before, limit)
        if whose.actor is not None:
            return await self._store.list_jobs(f"{whose.tenant}/{whose.actor}", now_ms, before, limit)
        return await self._store.list_all_jobs(whose.tenant, now_ms, before, limit)

    async def deliveries(self, metas: Sequence[Meta]) -> Mapping[str, Delivery]:
        """How the posts of these jobs go, by job id; a read for those that have a webhook, and none without any."""
        wanted = [meta.job_id for meta in metas if meta.webhook is not None]
        return await self._store.get_deliveries(wanted) if wanted else {}

    async def wait(self, identity: Identity, job_id: str, seconds: float) -> tuple[Meta, State]:
        """As `look`, held until its status or its counts change, or it has ended, or the seconds pass."""
        meta, first = await self.look(identity, job_id)
        end = self._clock.now_ms() + int(seconds * 1000)
        state: State | None = first
        while state is not None and state.status not in ENDED and _seen(state) == _seen(first):
            left = (end - self._clock.now_ms()) / 1000
            if left <= 0:
                break
            await self._clock.sleep(min(POLL_SECONDS, left))
            state = await self._store.get_state(job_id)
        return meta, state or first

    async def page(
        self,
        identity: Identity,
        job_id: str,
        first: int,
        limit: int,
        accept: Callable[[Slot], bool],
        *,
        content: bool = False,
    ) -> Page:
        """Up to `limit` slots from index `first` on; `accept` says whether one is taken. Contents that are kept in the
        table come along only when asked for."""
        _, state = await self.look(identity, job_id)
        taken: list[Slot] = []
        held = 0
        for start in range(first - first % SEGMENT, state.total, SEGMENT):
            last = min(start + SEGMENT, state.total) - 1
            for slot in await self.segment(state, max(first, start), last, content):
                if len(taken) == limit or held > PAGE_CONTENT_BYTES:
                    return Page(taken, slot.index)
                if accept(slot):
                    taken.append(slot)
                    held += len((slot.outcome and slot.outcome.content) or b"")
        return Page(taken)

    async def slot(self, identity: Identity, job_id: str, index: int) -> Slot:
        """One target. Raises NotFound."""
        _, state = await self.look(identity, job_id)
        if not 0 <= index < state.total:
            raise NotFound("not_found", f"The job has no target {index}.", f"Its targets are 0 to {state.total - 1}.")
        return (await self.segment(state, index, index))[0]

    async def specs(self, job_id: str, indexes: Sequence[int]) -> list[AnySpec]:
        """These targets of a job as they were submitted."""
        found: list[AnySpec] = []
        for number in sorted({index // SEGMENT for index in indexes}):
            segment = await read_segment(self._store, self._blobs, job_id, number)
            found += [segment[index % SEGMENT] for index in indexes if index // SEGMENT == number]
        return found

    async def segment(self, state: State, first: int, last: int, content: bool = True) -> list[Slot]:
        """The slots `first..last` of a job in this state, all of one segment, whoever may read it. What was submitted
        is read only where an outcome lacks."""
        number = first // SEGMENT
        outcomes: Mapping[int, Outcome] = {}
        if first < state.released:
            outcomes = await self._store.get_segment_outcomes(state.job_id, number, first, last, content=content)
        specs: Sequence[AnySpec] | None = None
        slots = []
        for index in range(first, last + 1):
            finished = index < state.released and index not in state.flight
            if finished and index in outcomes:
                slots.append(_finished(outcomes[index]))
                continue
            if specs is None:
                specs = await read_segment(self._store, self._blobs, state.job_id, number)
            slots.append(_derived(state, index, specs[index % SEGMENT], self._clock.now_ms()))
        return slots


def _may_read(identity: Identity, meta: Meta) -> bool:
    return meta.caller == identity.caller or identity.is_admin_of(meta.identity["tenant"])


def _seen(state: State) -> tuple[object, ...]:
    return state.status, state.done, state.failed


def _finished(outcome: Outcome) -> Slot:
    document = outcome.document
    return Slot(
        outcome.index,
        outcome.status,
        document.get("url"),
        document["id"],
        document["attempts"],
        document.get("options", {}),
        outcome,
        document["error"],
        document.get("path"),
        document.get("model"),
    )


def _derived(state: State, index: int, spec: AnySpec, now_ms: int) -> Slot:
    """A target without an outcome: what the job's state says of it."""
    entry = state.flight.get(index)
    attempts = spec.attempts + (max(entry.claims, int(entry.busy_since is not None)) if entry else 0)
    if state.status == "cancelled":
        error = _error("cancelled", "The job was cancelled before this target ran.", "Submit it again.")
        return _slot(index, "cancelled", spec, attempts, error)
    if state.status in ENDED:
        error = _error(
            "deadline",
            "The job's deadline passed before this target ran.",
            "Submit it again, in a smaller job or with a longer deadline.",
        )
        return _slot(index, "failed", spec, attempts, error)
    running = entry is not None and entry.claims > 0 and entry.until > now_ms
    return _slot(index, "running" if running else "pending", spec, attempts)


def _slot(index: int, status: str, spec: AnySpec, attempts: int, error: Mapping[str, Any] | None = None) -> Slot:
    if isinstance(spec, Spec):
        return Slot(index, status, spec.url, spec.label, attempts, spec.options, error=error)
    return Slot(index, status, None, spec.label, attempts, error=error, path=spec.path, model=spec.model)


def _error(code: str, detail: str, hint: str) -> dict[str, Any]:
    return {"code": code, "detail": detail, "hint": hint, "status": None}
