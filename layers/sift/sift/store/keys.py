"""Every key of the table, as pure functions; the layout is described in ARCHITECTURE.md."""

from __future__ import annotations

from sift.jobs import SEGMENT


def idempotency(key: str) -> tuple[str, str]:
    return f"IDEM#{key}", "IDEM"


def caller_live(caller: str) -> tuple[str, str]:
    return f"CALLER#{caller}", "LIVE"


def caller_job(caller: str, job_id: str) -> tuple[str, str]:
    return f"CALLER#{caller}", f"JOB#{job_id}"


def webhook_secrets(caller: str) -> tuple[str, str]:
    return f"CALLER#{caller}", "WEBHOOK"


def all_jobs(job_id: str) -> tuple[str, str]:
    """One partition lists every job, newest last: ids sort by time."""
    return "JOBS", f"JOB#{job_id}"


def live(shard: int) -> tuple[str, str]:
    return f"LIVE#{shard}", "LIVE"


def outbox(shard: int) -> tuple[str, str]:
    return f"OUTBOX#{shard}", "OUTBOX"


def removals(shard: int) -> tuple[str, str]:
    return f"REMOVE#{shard}", "REMOVE"


def meta(job_id: str) -> tuple[str, str]:
    return f"JOB#{job_id}", "META"


def state(job_id: str) -> tuple[str, str]:
    return f"JOB#{job_id}", "STATE"


def delivery(job_id: str) -> tuple[str, str]:
    """Beside META and STATE, so that no post ever stands in the way of the job."""
    return f"JOB#{job_id}", "HOOK"


def segment(job_id: str, number: int) -> tuple[str, str]:
    return f"JOB#{job_id}#{number}", "SPECS"


def outcome(job_id: str, index: int) -> tuple[str, str]:
    """Six digits, so that a segment's outcomes sort by index."""
    return f"JOB#{job_id}#{index // SEGMENT}", f"T#{index:06d}"


def api_key(key_id: str) -> tuple[str, str]:
    return f"KEY#{key_id}", "KEY"


def listed_key(key_id: str) -> tuple[str, str]:
    """One partition lists every key; what it lists is in the key's own item."""
    return "KEYS", f"KEY#{key_id}"


def assembly(job_id: str) -> tuple[str, str]:
    """Apart from META and STATE: a status read must not pay for it."""
    return f"RESULTS#{job_id}", "RESULTS"


def pace(host: str) -> tuple[str, str]:
    return f"HOST#{host}", "PACE"
