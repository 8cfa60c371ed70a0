"""The message that carries one target through the queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sift.errors import DataUnreadable
from sift.ids import is_job_id
from sift.pacing import Slot

VERSION = 1


class NotAMessage(ValueError):
    """What no version of sift wrote. Its text shows nothing of it."""


@dataclass(frozen=True, slots=True)
class TargetMessage:
    """One target on its way to a worker, with all that the worker needs before its claim."""

    job_id: str
    index: int
    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str | None = None
    #: Attempts of the job that this one retries.
    attempts: int = 0
    #: The turn of its host that is kept for it.
    slot: Slot | None = None

    def encode(self) -> str:
        """The message body: compact JSON."""
        body: dict[str, Any] = {"v": VERSION, "job": self.job_id, "index": self.index, "url": self.url}
        if self.options:
            body["options"] = dict(self.options)
        if self.label is not None:
            body["id"] = self.label
        if self.attempts:
            body["attempts"] = self.attempts
        if self.slot is not None:
            body["slot"] = [self.slot.at, self.slot.lane]
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def decode(body: str) -> TargetMessage:
    """The target in a message body. Raises NotAMessage for what was never one, DataUnreadable for a later version."""
    try:
        data = json.loads(body)
        version = data["v"]
        if version != VERSION:
            shown = version if isinstance(version, int) else "that is no number"
            raise DataUnreadable(f"The message has a version {shown}.")
        message = TargetMessage(
            data["job"],
            data["index"],
            data["url"],
            data.get("options", {}),
            data.get("id"),
            data.get("attempts", 0),
            Slot(*data["slot"]) if "slot" in data else None,
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise NotAMessage(f"not a target message: {type(error).__name__}") from error
    sound = (
        isinstance(message.job_id, str)
        and is_job_id(message.job_id)
        and type(message.index) is int
        and message.index >= 0
        and isinstance(message.url, str)
        and isinstance(message.options, dict)
        and (message.label is None or isinstance(message.label, str))
        and type(message.attempts) is int
        and (message.slot is None or {type(message.slot.at), type(message.slot.lane)} == {int})
    )
    if not sound:
        raise NotAMessage("not a target message: a field has the wrong form")
    return message
