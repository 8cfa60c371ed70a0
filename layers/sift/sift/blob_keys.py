"""The keys of the bucket: what is kept under which name."""

from __future__ import annotations


def job_prefix(job_id: str) -> str:
    """What all keys of a job begin with."""
    return f"jobs/{job_id}/"


def content_key(job_id: str, index: int, lease: int) -> str:
    """A target's content; the lease is part of it, so that a late worker can't overwrite its successor's."""
    return f"{job_prefix(job_id)}{index}/{lease}"


def answer_key(name: str) -> str:
    """A content that was fetched at once and belongs to no job; the bucket's lifecycle removes it within days."""
    return f"answers/{name}"


def input_key(job_id: str, index: int) -> str:
    """The body of a request that is too large for the table and a message."""
    return f"{job_prefix(job_id)}inputs/{index}"


def results_prefix(job_id: str) -> str:
    """What the keys of a job's results file begin with."""
    return f"{job_prefix(job_id)}results/"


def results_key(job_id: str, attempt: str) -> str:
    """A job's results file, by the attempt that wrote it."""
    return f"{results_prefix(job_id)}{attempt}.jsonl.gz"


def segment_key(job_id: str, number: int) -> str:
    """A segment of targets as submitted."""
    return f"{job_prefix(job_id)}specs/{number}"
