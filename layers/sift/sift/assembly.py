"""The results file of a job: how far its assembly has come, and the message that asks for the next steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from sift.blob_keys import results_key
from sift.errors import DataUnreadable
from sift.ids import is_job_id
from sift.jobs import Flight
from sift.messages import NotAMessage

VERSION = 1


@dataclass(frozen=True, slots=True)
class Assembly:
    """How far the file has come. `flight` is the job's as it was when the assembly began: what the file says does not
    change while it is written. `parts` are the bucket's tags of what is uploaded, `next_index` the first target that
    is in none of them. `revision` counts the changes; times in milliseconds, `expires_at` in seconds."""

    job_id: str
    attempt: str
    flight: Mapping[int, Flight]
    touched_at: int
    expires_at: int | None
    next_index: int = 0
    parts: tuple[str, ...] = field(default=())
    upload: str | None = None
    size: int = 0
    done: bool = False
    restarts: int = 0
    revision: int = 0

    @property
    def key(self) -> str:
        """Where the file will be. Nobody is told before it is whole."""
        return results_key(self.job_id, self.attempt)


@dataclass(frozen=True, slots=True)
class AssemblyMessage:
    """Asks for the next steps of a job's file; it carries nothing but the job."""

    job_id: str

    def encode(self) -> str:
        """The message body: compact JSON."""
        return json.dumps({"v": VERSION, "job": self.job_id}, separators=(",", ":"))


def decode(body: str) -> AssemblyMessage:
    """The message in a body. Raises NotAMessage for what was never one, DataUnreadable for a later version."""
    try:
        data = json.loads(body)
        version, job_id = data["v"], data["job"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise NotAMessage(f"not an assembly message: {type(error).__name__}") from error
    if version != VERSION:
        raise DataUnreadable("The message has another version.")
    if not isinstance(job_id, str) or not is_job_id(job_id):
        raise NotAMessage("not an assembly message: it names no job")
    return AssemblyMessage(job_id)
