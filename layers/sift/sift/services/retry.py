"""Run again what an ended job did not get done, as a new job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sift.errors import Conflict, Invalid
from sift.identity import Identity
from sift.jobs import ENDED
from sift.services.read import Reader
from sift.services.slots import Slot
from sift.services.submit import Request, Submitted, Submitter
from sift.specs import AnySpec, Spec


class Retrier:
    """Retries on behalf of a job's caller."""

    def __init__(self, reader: Reader, submitter: Submitter) -> None:
        self._reader = reader
        self._submitter = submitter

    async def retry(self, identity: Identity, job_id: str) -> Submitted:
        """A new job of the targets that failed or never ran, their attempts carried over, through the same caps.

        Retrying the same job again answers the same new job. Raises NotFound, Conflict while the job is live,
        Invalid when nothing is left to retry, and whatever a submission may be refused with.
        """
        meta, state = await self._reader.job(identity, job_id)
        if state.status not in ENDED:
            raise Conflict(
                "invalid_state", f"The job is {state.status}; it can't be retried.", "Wait for its end, or cancel it."
            )
        page = await self._reader.page(
            identity, job_id, 0, state.total, lambda slot: slot.status in {"failed", "cancelled"}
        )
        if not page.slots:
            raise Invalid("nothing_to_retry", "Every target of the job is done.", "Read its targets.")
        targets = await self._specs(job_id, page.slots)
        request = Request(
            targets=targets,
            options=meta.options,
            metadata=meta.metadata,
            window=state.window,
            retry_of=job_id,
            webhook=meta.webhook,
        )
        return await self._submitter.submit(identity, request)

    async def _specs(self, job_id: str, slots: Sequence[Slot]) -> list[AnySpec]:
        """What is to run again; of a URL its slot says all, of a request it lacks the body."""
        urls = [Spec(slot.url, slot.options, slot.label, slot.attempts) for slot in slots if slot.url is not None]
        requests = {slot.index: slot.attempts for slot in slots if slot.url is None}
        found = await self._reader.specs(job_id, list(requests)) if requests else []
        return [*urls, *(replace(spec, attempts=done) for spec, done in zip(found, requests.values(), strict=True))]
