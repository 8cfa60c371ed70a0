"""Post the events of jobs to their webhooks: signed, at least once, again and again for a day."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sift import logs, metrics
from sift.clock import Clock, rfc3339
from sift.errors import TargetBusy, TargetFailed
from sift.jobs import Meta
from sift.notices import Notice, decode
from sift.queue.ports import DeadLetters, Queue, Received
from sift.services.judge import Judge
from sift.store.ports import Store
from sift.webhooks import JOB_ENDED, Delivery, signed_headers

#: What one post may take, in seconds: a receiver takes a message in and works on it later.
POST_SECONDS = 10.0
#: Seconds of the function's time that are left for what follows a post.
RESERVE_SECONDS = 5.0
#: A post is given up so long after the event (ms).
GIVE_UP_MS = 24 * 3_600_000
#: The first wait and the longest one, in seconds; each is twice the one before.
FIRST_WAIT = 5.0
MOST_WAIT = 3_600.0

#: After a post that failed, others of the same caller to the same address are put off for so long at most (s).
REST_SECONDS = 60.0
#: A process remembers this many of such addresses.
MOST_RESTING = 1_000

GONE_STATUS = 410

_log = logging.getLogger(__name__)


class Answer(Protocol):
    """What a receiver answered: `retry_after` is in seconds, None where it does not say."""

    @property
    def status(self) -> int: ...

    @property
    def retry_after(self) -> float | None: ...


class Poster(Protocol):
    """Posts JSON through the guard. Raises TargetFailed or TargetBusy where there was no answer."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_s: float) -> Answer: ...


def post_wait(attempts: int, retry_after: float | None, jitter: float) -> float:
    """Seconds until the next try after so many; `jitter` is in 0..1."""
    doubled: float = FIRST_WAIT * 2 ** min(attempts - 1, 20)
    wait = min(MOST_WAIT, doubled) * (0.75 + jitter / 2)
    return max(wait, min(retry_after or 0.0, MOST_WAIT))


class Notifier:
    """Works on batches of notices; its answers tell which of them stay on the queue, as `judge` has it."""

    def __init__(
        self,
        *,
        store: Store,
        queue: Queue,
        dead_letters: DeadLetters,
        poster: Poster,
        clock: Clock,
        random_source: random.Random | None = None,
    ) -> None:
        self._store = store
        self._dead_letters = dead_letters
        self._poster = poster
        self._clock = clock
        self._random = random_source or random.Random()  # noqa: S311 (spreads load)
        self.judge = Judge("a notice", queue, dead_letters, self._next_wait)
        #: Until when (ms) which addresses of which callers are left alone. Each process finds that out by itself: a
        #: write for each failed post would cost more than a few posts.
        self._resting: dict[tuple[str, str], float] = {}

    async def run_batch(self, batch: Sequence[Received], seconds_left: Callable[[], float]) -> list[str]:
        """Work on all at once; returns the ids of the messages that are to stay on the queue."""
        return await self.judge.judge_all(batch, lambda received: self._work(received, seconds_left))

    def _next_wait(self, received: Received, retry_after: float | None = None) -> float:
        """Ever longer, whatever failed: after 1,000 receives the queue would move a notice, and its job would not say
        so."""
        return post_wait(received.receives, retry_after, self._random.random())

    async def _work(self, received: Received, seconds_left: Callable[[], float]) -> float | None:
        logs.add(message_id=received.message_id)
        notice = decode(received.body)
        logs.add(job_id=notice.job_id, event=notice.event, index=notice.index)
        if seconds_left() < POST_SECONDS + RESERVE_SECONDS:
            return 0.0
        job = await self._store.get_job(notice.job_id)
        if job is None or (webhook := job[0].webhook) is None:
            _log.info("the job of a notice is gone")
            return None
        meta = job[0]
        known = (await self._store.get_deliveries([notice.job_id])).get(notice.job_id)
        if known is not None and known.status == GONE_STATUS:
            return None  # the receiver does not want to hear of this job any more
        address = (meta.caller, webhook["url"])
        if self._clock.now_ms() < self._resting.get(address, 0):
            # A job may have thousands of notices, and each post to a receiver that hangs holds a place that the posts
            # of others wait for. What is the notice's last chance is taken all the same.
            wait = self._next_wait(received)
            if not self._is_last(notice, wait):
                return wait
        delivery, retry_after = await self._post(notice, meta, webhook)
        if delivery.state == "delivered":
            metrics.add(metrics.WEBHOOK_POSTS, label="delivered")
            self._resting.pop(address, None)
            if notice.event == JOB_ENDED or received.receives > 1 or known is None:
                await self._note(meta, known, delivery)
            return None
        _log.warning("a webhook was not taken", extra={"code": delivery.error, "status": delivery.status})
        wait = self._next_wait(received, retry_after)
        if delivery.state == "failed" or self._is_last(notice, wait):
            await self._give_up(received, meta, known, Delivery("failed", delivery.status, delivery.error))
            return None
        metrics.add(metrics.WEBHOOK_POSTS, label="retried")
        self._rest(address, min(wait, REST_SECONDS))
        await self._note(meta, known, delivery)
        return wait

    def _is_last(self, notice: Notice, wait: float) -> bool:
        """Whether after so many seconds it is too late for another try."""
        return self._clock.now_ms() + wait * 1000 - notice.at > GIVE_UP_MS

    def _rest(self, address: tuple[str, str], seconds: float) -> None:
        now = self._clock.now_ms()
        if len(self._resting) >= MOST_RESTING:
            self._resting = {known: until for known, until in self._resting.items() if until > now}
        if len(self._resting) < MOST_RESTING:
            self._resting[address] = now + seconds * 1000

    async def _post(self, notice: Notice, meta: Meta, webhook: Mapping[str, Any]) -> tuple[Delivery, float | None]:
        """What came of one post, and when the receiver wants the next: `failed` where another one is of no use."""
        now_s = self._clock.now_ms() // 1000
        secrets = await self._store.get_secrets(meta.caller)
        if secrets is None:
            return Delivery("retrying", error="no_webhook_secret"), None
        body = _body(notice, meta, webhook)
        signed = signed_headers(secrets.valid(now_s), notice.message_id, now_s, body)
        logs.add(host=logs.host_of(webhook["url"]))
        try:
            answer = await self._poster.post(webhook["url"], {**webhook["headers"], **signed}, body, POST_SECONDS)
        except TargetBusy:
            return Delivery("retrying", error="connect_failed"), None
        except TargetFailed as error:
            final = error.code in {"blocked_address", "invalid_url"}
            return Delivery("failed" if final else "retrying", error=error.code), None
        status = answer.status
        if 200 <= status < 300:
            return Delivery("delivered", status), None
        if status == GONE_STATUS:
            return Delivery("failed", status, "gone"), None
        code = "redirected" if 300 <= status < 400 else "http_error"
        return Delivery("retrying", status, code), answer.retry_after

    async def _give_up(self, received: Received, meta: Meta, known: Delivery | None, delivery: Delivery) -> None:
        """The job says so for good; what may be sent again by an operator goes to the dead-letter queue."""
        metrics.add(metrics.WEBHOOK_POSTS, label="failed")
        if delivery.status != GONE_STATUS:
            await self._dead_letters.bury(received.body, f"{delivery.error} {delivery.status or ''}".strip())
        await self._note(meta, known, delivery)

    async def _note(self, meta: Meta, known: Delivery | None, delivery: Delivery) -> None:
        """Only what changes is written: a receiver that is away must not cost a write for each post."""
        if delivery != known:
            await self._store.note_delivery(meta.job_id, delivery, meta.expires_at)


def _body(notice: Notice, meta: Meta, webhook: Mapping[str, Any]) -> bytes:
    """The payload: type, timestamp and data, as Standard Webhooks has it; the same at every try."""
    data = {
        "job_id": meta.job_id,
        "kind": meta.kind,
        "tenant": meta.identity.get("tenant"),
        "actor": meta.identity.get("actor"),
        "created_at": rfc3339(meta.created_at),
        **notice.data,
        "metadata": dict(webhook["metadata"]),
    }
    document = {"type": notice.event, "timestamp": rfc3339(notice.at), "data": data}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
