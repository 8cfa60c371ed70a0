"""Sift as a reader of its API would explain it: jobs, their slots, and what each call does to them."""

from __future__ import annotations

from dataclasses import dataclass, field

LIVE = {"queued", "running", "paused"}
WITHOUT_RESULT = {"failed", "cancelled"}


class Refused(Exception):
    """The call is refused with this code."""


@dataclass
class Job:
    """`slots` are pending, done or failed. Times in milliseconds, `expires` in seconds."""

    caller: str
    urls: tuple[str, ...]
    deadline: int
    key: tuple[str, ...] | None
    explicit: bool
    slots: list[str]
    status: str = "queued"
    error: str | None = None
    expires: int | None = None

    def shown(self) -> list[str]:
        """The slots as they are read."""
        rest = {"cancelled": "cancelled", "partial": "failed", "failed": "failed"}.get(self.status, "pending")
        return [rest if slot == "pending" else slot for slot in self.slots]


@dataclass
class Model:
    """All state is in `jobs`, in the order of their making; a deleted one is no longer there."""

    jobs_per_caller: int
    jobs_total: int
    deadline_seconds: int
    ttl_seconds: int
    now: int
    jobs: dict[str, Job] = field(default_factory=dict)

    def visible(self, caller: str, job_id: str) -> Job:
        job = self.jobs.get(job_id)
        if job is None or job.caller != caller or (job.expires is not None and job.expires * 1000 <= self.now):
            raise Refused("not_found")
        return job

    def shown_to(self, caller: str) -> list[str]:
        """Newest first."""
        shown = []
        for job_id in self.jobs:
            try:
                self.visible(caller, job_id)
            except Refused:
                continue
            shown.insert(0, job_id)
        return shown

    def submit(self, caller: str, urls: tuple[str, ...], key: tuple[str, ...] | None, explicit: bool) -> str | None:
        """The job that answers the submission, or None when it is to be a new one."""
        for job_id in self.shown_to(caller) if key is not None else []:
            job = self.jobs[job_id]
            if job.key == key and (job.explicit or job.status not in WITHOUT_RESULT):
                if job.urls != urls:
                    raise Refused("idempotency_mismatch")
                return job_id
        live = [job for job in self.jobs.values() if job.status in LIVE]
        if sum(job.caller == caller for job in live) >= self.jobs_per_caller:
            raise Refused("caller_busy")
        if len(live) >= self.jobs_total:
            raise Refused("jobs_busy")
        return None

    def add(self, job_id: str, caller: str, urls: tuple[str, ...], key: tuple[str, ...] | None, explicit: bool) -> None:
        deadline = self.now + self.deadline_seconds * 1000
        self.jobs[job_id] = Job(caller, urls, deadline, key, explicit, ["pending"] * len(urls))

    def touch(self, job: Job) -> None:
        """Whatever touches a job ends it when it is finished or late."""
        if job.status not in LIVE:
            return
        if "pending" not in job.slots:
            self.end(job, "done" if "failed" not in job.slots else "partial" if "done" in job.slots else "failed")
        elif self.now >= job.deadline:
            self.end(job, "partial" if "done" in job.slots else "failed", "deadline")

    def end(self, job: Job, status: str, error: str | None = None) -> None:
        job.status, job.error = status, error
        job.expires = self.now // 1000 + self.ttl_seconds

    def deliver(self, job_id: str, index: int, result: str) -> bool:
        """A message reaches a worker; whether its target is fetched."""
        job = self.jobs.get(job_id)
        if job is None:
            return False
        fetched = job.status in {"queued", "running"} and job.slots[index] == "pending"
        if fetched:
            job.status = "running"
            if fetched := self.now < job.deadline:
                job.slots[index] = result
        self.touch(job)
        return fetched

    def sweep(self) -> None:
        for job in self.jobs.values():
            self.touch(job)

    def cancel(self, caller: str, job_id: str) -> None:
        job = self.visible(caller, job_id)
        if job.status in LIVE:
            self.end(job, "cancelled")
        elif job.status != "cancelled":
            raise Refused("invalid_state")

    def pause(self, caller: str, job_id: str) -> None:
        job = self.visible(caller, job_id)
        if job.status == "paused":
            return
        if job.status not in LIVE:
            raise Refused("invalid_state")
        job.status = "paused"
        self.touch(job)

    def resume(self, caller: str, job_id: str) -> None:
        job = self.visible(caller, job_id)
        if job.status != "paused":
            raise Refused("invalid_state")
        job.status = "queued"
        self.touch(job)

    def retry(self, caller: str, job_id: str) -> tuple[str, ...]:
        """What the new job is of."""
        job = self.visible(caller, job_id)
        if job.status in LIVE:
            raise Refused("invalid_state")
        left = tuple(url for url, slot in zip(job.urls, job.slots, strict=True) if slot != "done")
        if not left:
            raise Refused("nothing_to_retry")
        return left

    def delete(self, caller: str, job_id: str) -> None:
        if self.visible(caller, job_id).status in LIVE:
            raise Refused("invalid_state")
        del self.jobs[job_id]
