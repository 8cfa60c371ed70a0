"""Take a job in: the same work once, within the caps, in one transaction."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sift import ids, metrics
from sift.blob_keys import segment_key
from sift.blobs.ports import Blobs
from sift.clock import Clock
from sift.errors import CallerBusy, Conflict, Forbidden, Invalid, RequestRefused, ServiceBusy, Unavailable
from sift.idempotency import content_hash, key_hash
from sift.identity import Identity, Limits
from sift.jobs import MAX_WINDOW, SEGMENT, Flight, Kind, Meta, State
from sift.model_requests import check_requests
from sift.queue.ports import Sender
from sift.request_headers import without_credentials
from sift.services.advance import quiet_since, target_message
from sift.services.inputs import place, store
from sift.services.terms import Terms, shard_cap, shard_count
from sift.specs import AnySpec, RequestSpec, Spec, pack_specs
from sift.store.ports import CapReached, Committed, Idempotency, Segment, Store, Submission
from sift.webhooks import mask

#: DynamoDB's item limit is 400 KB; a segment above this goes to the bucket.
SEGMENT_INLINE_BYTES = 300_000
#: DynamoDB's transaction limit is 4 MB and 100 items; more than this is written ahead of the commit.
COMMIT_BYTES = 2_500_000
COMMIT_SEGMENTS = 80
#: Seconds after which a refused caller may try again.
CALLER_RETRY = 15
SERVICE_RETRY = 30

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """A submission that has been read, whose targets are all of one kind. `idempotency_key` is the caller's own;
    `fresh` asks for a new run."""

    targets: Sequence[AnySpec]
    options: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    window: int = MAX_WINDOW
    fresh: bool = False
    idempotency_key: str | None = None
    retry_of: str | None = None
    #: url, events, headers and metadata, all of them checked.
    webhook: Mapping[str, Any] | None = None

    @property
    def kind(self) -> Kind:
        """What its targets are."""
        return "inference" if isinstance(self.targets[0], RequestSpec) else "fetch"


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job that stands for the request; `reused` when an earlier submission made it."""

    meta: Meta
    state: State
    reused: bool


class Submitter:
    """Submits for any caller."""

    def __init__(self, store: Store, queue: Sender, blobs: Blobs, clock: Clock, terms: Terms) -> None:
        self._store = store
        self._queue = queue
        self._blobs = blobs
        self._clock = clock
        self._terms = terms

    async def submit(self, identity: Identity, request: Request) -> Submitted:
        """The job for this request, new or reused. Raises RequestRefused; then nothing is stored."""
        try:
            submitted = await self._submit(identity, request)
        except RequestRefused as refusal:
            metrics.add(metrics.JOBS_REFUSED, label=refusal.code)
            raise
        metrics.add(metrics.JOBS_REUSED if submitted.reused else metrics.JOBS_CREATED)
        _log.info("submitted", extra={"job_id": submitted.meta.job_id, "reused": submitted.reused})
        return submitted

    async def _submit(self, identity: Identity, request: Request) -> Submitted:
        if not request.targets:
            raise Invalid("no_targets", "The job has no targets.", "Send at least one target.")
        limits = self._terms.limits_of(identity)
        self._check(identity, request)
        record, stale = None, None
        if not request.fresh:
            found = await self._lookup(identity, request)
            if isinstance(found, Submitted):
                return found
            record, stale = found
        if len(request.targets) > limits.targets_per_job:
            raise Invalid(
                "too_many_targets",
                f"The job has {len(request.targets)} targets; {limits.targets_per_job} are allowed.",
                f"Send jobs of at most {limits.targets_per_job} targets.",
                extra={"limit": limits.targets_per_job},
            )
        if request.webhook is not None and await self._store.get_secrets(identity.caller) is None:
            raise Invalid(
                "no_webhook_secret",
                "This caller has no secret to sign webhooks with.",
                "An operator makes one: sift keys webhook-secret. Or submit without webhook.",
            )
        held = await self._store.count_jobs(identity.caller, self._clock.now_ms(), limits.retained_jobs)
        if held >= limits.retained_jobs:
            raise CallerBusy(
                "store_full",
                f"{limits.retained_jobs} jobs of this caller are retained.",
                "Delete old jobs, or wait until they expire.",
                retry_after=SERVICE_RETRY * 10,
            )
        return await self._commit(identity, request, limits, record, stale)

    def _check(self, identity: Identity, request: Request) -> None:
        """Whether requests may be sent at all, and these by this caller."""
        requests = [spec for spec in request.targets if isinstance(spec, RequestSpec)]
        if not requests:
            return
        if len(requests) != len(request.targets):
            raise AssertionError("a job is of one kind")
        if self._terms.paths is None:
            raise Forbidden(
                "kind_disabled",
                "This deployment has no model gateway: it runs fetch jobs only.",
                "Send `targets`, a list of URLs to fetch.",
            )
        check_requests(requests, identity, self._terms.paths)

    async def _lookup(self, identity: Identity, request: Request) -> Submitted | tuple[Idempotency, str | None]:
        """The job that stands for this work; else the record to write, and the job of a stale one in its place."""
        work: list[Any] = [_work(spec) for spec in request.targets]
        if request.webhook is not None:
            work.append({"webhook": dict(request.webhook)})  # an earlier job would post elsewhere, or not at all
        if request.retry_of is not None:
            # Work of its own: the original holds the record of the plain submission. Its targets are not part of it,
            # for a late outcome of a cancelled job makes them fewer.
            work = [{"retry_of": request.retry_of}]
        work_hash = content_hash(identity.caller, request.kind, work)
        explicit = request.idempotency_key
        key = work_hash if explicit is None else key_hash(identity.caller, explicit)
        wanted = Idempotency(key, "", work_hash, None)
        held = await self._store.get_idempotency(key)
        if held is None:
            return wanted, None
        return await self._judge(wanted, held)

    async def _judge(self, wanted: Idempotency, held: Idempotency) -> Submitted | tuple[Idempotency, str | None]:
        job = await self._store.get_job(held.job_id)
        if job is None:
            return wanted, held.job_id
        meta, state = job
        without_result = state.status in {"failed", "cancelled"} and not meta.explicit_key
        if state.expired(self._clock.now_ms()) or without_result:
            return wanted, held.job_id
        if held.work != wanted.work:
            raise Conflict(
                "idempotency_mismatch",
                f"This Idempotency-Key was used for other work, the job {held.job_id}.",
                "Use a new key for new work.",
                extra={"job_id": held.job_id},
            )
        return Submitted(meta, state, reused=True)

    def _paced(self, identity: Identity, targets: Sequence[AnySpec]) -> Sequence[AnySpec]:
        """The targets with the pace of the caller's class, where it has one of its own."""
        if identity.caller_class not in self._terms.paced:
            return targets
        return [replace(spec, pace=identity.caller_class) if isinstance(spec, Spec) else spec for spec in targets]

    async def _commit(
        self,
        identity: Identity,
        request: Request,
        limits: Limits,
        record: Idempotency | None,
        stale: str | None,
    ) -> Submitted:
        now = self._clock.now_ms()
        job_id = ids.new_job_id(now)
        deadline_at = now + self._terms.deadline_seconds * 1000
        ttl = limits.ttl_seconds
        expires_at = deadline_at // 1000 + ttl if ttl else None
        targets, inputs = place(job_id, self._paced(identity, request.targets))
        segments, blobs, size = _segments(job_id, targets)
        ahead = size > COMMIT_BYTES or len(segments) > COMMIT_SEGMENTS
        if ahead or blobs or inputs:
            if (refusal := await self._foresee_refusal(identity, limits)) is not None:
                # The slot may be held by the same work, which was committed since it was looked up.
                held = await self._store.get_idempotency(record.key) if record else None
                found = await self._judge(record, held) if record and held else None
                if isinstance(found, Submitted):
                    return found
                raise refusal
            await store(self._blobs, inputs)
            for blob, packed in blobs.items():
                await self._blobs.put(blob, packed, "application/zlib")
            if ahead:
                await self._store.put_segments(job_id, segments, expires_at)
        total = len(targets)
        window = min(request.window, limits.window)
        released = min(window, total)
        state = State(
            job_id=job_id,
            status="queued",
            total=total,
            released=released,
            window=window,
            budget=limits.job_bytes,
            deadline_at=deadline_at,
            expires_at=expires_at,
            flight={index: Flight(quiet_since(now)) for index in range(released)},
            notify=mask(request.webhook["events"]) if request.webhook else 0,
        )
        shards = shard_count(self._terms.jobs_total)
        first = secrets.randbelow(shards)
        for shard in [*range(first, shards), *range(first)]:
            meta = Meta(
                job_id=job_id,
                kind=request.kind,
                caller=identity.caller,
                identity=identity.snapshot(),
                total=total,
                created_at=now,
                deadline_at=deadline_at,
                ttl_seconds=ttl,
                expires_at=expires_at,
                shard=shard,
                salt=secrets.token_hex(16),
                options=without_credentials(request.options),  # each target has its own, merged
                metadata=request.metadata,
                idempotency=record.key if record else None,
                explicit_key=request.idempotency_key is not None and record is not None,
                retry_of=request.retry_of,
                webhook=request.webhook,
            )
            answer = await self._store.commit(
                Submission(
                    meta=meta,
                    state=state,
                    idempotency=record and Idempotency(record.key, job_id, record.work, expires_at),
                    stale_job=stale,
                    caller_cap=limits.jobs_per_caller,
                    shard_cap=shard_cap(self._terms.jobs_total, shard),
                    segments=() if ahead else segments,
                ),
                now,
            )
            match answer:
                case Committed():
                    await self._send(job_id, targets[:released])
                    return Submitted(meta, state, reused=False)
                case CapReached("caller"):
                    if await self._free_lost_slots(identity.caller):
                        return await self._commit(identity, request, limits, record, stale)
                    raise _caller_busy(limits.jobs_per_caller)
                case CapReached():
                    continue
                case _:
                    return await self._after_race(identity, request, limits, record, answer.record)
        raise _jobs_busy(self._terms.jobs_total)

    async def _foresee_refusal(self, identity: Identity, limits: Limits) -> RequestRefused | None:
        """Two reads that spare a large job, which the caps would refuse, the writing of its segments."""
        live = await self._store.caller_live(identity.caller)
        if len(live) >= limits.jobs_per_caller and not await self._free_lost_slots(identity.caller):
            return _caller_busy(limits.jobs_per_caller)
        for shard in range(shard_count(self._terms.jobs_total)):
            if len(await self._store.live_jobs(shard)) < shard_cap(self._terms.jobs_total, shard):
                return None
        return _jobs_busy(self._terms.jobs_total)

    async def _free_lost_slots(self, caller: str) -> bool:
        """Free what is held by jobs that no longer exist: a sweeper that stood still for longer than their
        retention left them to the table's TTL. Only a refused caller pays for looking."""
        held = await self._store.caller_live(caller)
        found = {meta.job_id for meta, _ in await self._store.get_jobs(held)}
        lost = [job_id for job_id in held if job_id not in found]
        for job_id in lost:
            _log.error("a job's items are gone: the slot of its caller is freed", extra={"job_id": job_id})
            await self._store.forget_live(job_id, caller=caller)
        return bool(lost)

    async def _after_race(
        self,
        identity: Identity,
        request: Request,
        limits: Limits,
        record: Idempotency | None,
        held: Idempotency,
    ) -> Submitted:
        """The same work was committed by somebody else in between."""
        if record is None:
            raise AssertionError("a job without a record can't be a duplicate")
        found = await self._judge(record, held)
        if isinstance(found, Submitted):
            return found
        return await self._commit(identity, request, limits, record, found[1])

    async def _send(self, job_id: str, specs: Sequence[AnySpec]) -> None:
        """The first window. The job is committed, so a queue that fails now is the sweeper's to repair."""
        messages = [target_message(job_id, index, spec) for index, spec in enumerate(specs)]
        try:
            await self._queue.send(messages)
        except Unavailable as error:
            _log.warning("the first targets wait for the sweeper: %s", error.detail, extra={"job_id": job_id})


def _work(spec: AnySpec) -> Any:
    """What makes a target the same as another."""
    if isinstance(spec, Spec):
        return [spec.url, dict(spec.options), spec.label]
    body = None if spec.body is None else json.loads(spec.body)
    return [spec.path, spec.model, body, spec.label]


def _caller_busy(cap: int) -> CallerBusy:
    return CallerBusy(
        "caller_busy",
        f"{cap} jobs of this caller are live, its cap.",
        "Wait until one has ended, or cancel one.",
        retry_after=CALLER_RETRY,
        extra={"cap": "jobs_per_caller", "limit": cap},
    )


def _jobs_busy(cap: int) -> ServiceBusy:
    return ServiceBusy(
        "jobs_busy",
        f"{cap} jobs are live, the cap of the whole service.",
        "Submit it again later.",
        retry_after=SERVICE_RETRY,
        extra={"cap": "jobs_total", "limit": cap},
    )


def _segments(job_id: str, targets: Sequence[AnySpec]) -> tuple[list[Segment], dict[str, bytes], int]:
    """The targets in segments, what of them goes to the bucket by its key, and the stored size of the rest in bytes."""
    segments: list[Segment] = []
    blobs: dict[str, bytes] = {}
    size = 0
    for number, first in enumerate(range(0, len(targets), SEGMENT)):
        specs = targets[first : first + SEGMENT]
        packed = pack_specs(specs)
        if len(packed) > SEGMENT_INLINE_BYTES:
            key = segment_key(job_id, number)
            blobs[key] = packed
            segments.append(Segment(number, blob=key))
        else:
            segments.append(Segment(number, specs))
            size += len(packed)
    return segments, blobs, size
