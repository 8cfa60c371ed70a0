"""The message that carries one event of a job to the function that posts it to the job's webhook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sift.errors import DataUnreadable
from sift.ids import is_job_id
from sift.messages import NotAMessage
from sift.webhooks import EVENTS

VERSION = 1


@dataclass(frozen=True, slots=True)
class Notice:
    """One event. `at` is when it happened, in milliseconds; `index` is that of a target's event. `data` is what the
    post says beside what META knows, so that every try of it says the same."""

    job_id: str
    event: str
    at: int
    index: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def message_id(self) -> str:
        """What receivers tell repetitions by: the same event always has the same."""
        place = "" if self.index is None else f"_{self.index}"
        return f"msg_{self.job_id.removeprefix('job_')}_{self.event.replace('.', '_')}{place}"

    def encode(self) -> str:
        """The message body: compact JSON."""
        body: dict[str, Any] = {"v": VERSION, "job": self.job_id, "event": self.event, "at": self.at}
        if self.index is not None:
            body["index"] = self.index
        return json.dumps({**body, "data": dict(self.data)}, separators=(",", ":"), ensure_ascii=False)


def decode(body: str) -> Notice:
    """The event in a message body. Raises NotAMessage for what was never one, DataUnreadable for a later version."""
    try:
        read = json.loads(body)
        version = read["v"]
        if version != VERSION:
            shown = version if isinstance(version, int) else "that is no number"
            raise DataUnreadable(f"The message has a version {shown}.")
        notice = Notice(read["job"], read["event"], read["at"], read.get("index"), read["data"])
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise NotAMessage(f"not a notice: {type(error).__name__}") from error
    sound = (
        isinstance(notice.job_id, str)
        and is_job_id(notice.job_id)
        and notice.event in EVENTS
        and type(notice.at) is int
        and (notice.index is None or type(notice.index) is int)
        and isinstance(notice.data, dict)
    )
    if not sound:
        raise NotAMessage("not a notice: a field has the wrong form")
    return notice
