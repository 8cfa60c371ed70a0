"""The message that carries one target through the queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sift.errors import DataUnreadable
from sift.ids import is_job_id
from sift.jobs import Kind
from sift.pacing import Slot

VERSION = 1


class NotAMessage(ValueError):
    """What no version of sift wrote. Its text shows nothing of it."""


@dataclass(frozen=True, slots=True)
class TargetMessage:
    """One URL on its way to a worker, with all that the worker needs before its claim."""

    kind: ClassVar[Kind] = "fetch"

    job_id: str
    index: int
    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str | None = None
    #: Attempts of the job that this one retries.
    attempts: int = 0
    #: The turn of its host that is kept for it.
    slot: Slot | None = None
    #: The caller class by whose pace its host is asked; None: that of everybody.
    pace: str | None = None

    def encode(self) -> str:
        """The message body: compact JSON."""
        body: dict[str, Any] = {"url": self.url}
        if self.options:
            body["options"] = dict(self.options)
        if self.slot is not None:
            slot = self.slot
            body["slot"] = [slot.at, slot.lane, slot.span] if slot.span else [slot.at, slot.lane]
        if self.pace is not None:
            body["pace"] = self.pace
        return _encode(self, body)


@dataclass(frozen=True, slots=True)
class RequestMessage:
    """One request on its way to a worker. `body` is its JSON text, or None where that is in the bucket, under the key
    `blob`: a batch of messages may weigh 1 MiB in all."""

    kind: ClassVar[Kind] = "inference"

    job_id: str
    index: int
    path: str
    model: str | None = None
    body: str | None = None
    blob: str | None = None
    label: str | None = None
    attempts: int = 0

    def encode(self) -> str:
        """The message body: compact JSON."""
        found = {"path": self.path, "model": self.model, "body": self.body, "blob": self.blob}
        return _encode(self, {name: value for name, value in found.items() if value is not None})


Message = TargetMessage | RequestMessage


def _encode(message: Message, work: Mapping[str, Any]) -> str:
    body: dict[str, Any] = {"v": VERSION, "job": message.job_id, "index": message.index, **work}
    if message.label is not None:
        body["id"] = message.label
    if message.attempts:
        body["attempts"] = message.attempts
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    # Characters of any JSON text that SQS refuses, and with them whatever else is in the same batch.
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def decode(body: str) -> Message:
    """The target in a message body. Raises NotAMessage for what was never one, DataUnreadable for a later version."""
    try:
        data = json.loads(body)
        version = data["v"]
        if version != VERSION:
            shown = version if isinstance(version, int) else "that is no number"
            raise DataUnreadable(f"The message has a version {shown}.")
        job_id, index = data["job"], data["index"]
        label, attempts = data.get("id"), data.get("attempts", 0)
        message: Message
        if "path" in data:
            sound = _is_request(data)
            message = RequestMessage(
                job_id, index, data["path"], data.get("model"), data.get("body"), data.get("blob"), label, attempts
            )
        else:
            slot = Slot(*data["slot"]) if "slot" in data else None
            pace = data.get("pace")
            message = TargetMessage(job_id, index, data["url"], data.get("options", {}), label, attempts, slot, pace)
            sound = isinstance(message.url, str) and isinstance(message.options, dict)
            sound = sound and (slot is None or {type(slot.at), type(slot.lane), type(slot.span)} == {int})
            sound = sound and (pace is None or isinstance(pace, str))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise NotAMessage(f"not a target message: {type(error).__name__}") from error
    sound = (
        sound
        and isinstance(job_id, str)
        and is_job_id(job_id)
        and type(index) is int
        and index >= 0
        and (label is None or isinstance(label, str))
        and type(attempts) is int
    )
    if not sound:
        raise NotAMessage("not a target message: a field has the wrong form")
    return message


def _is_request(data: Mapping[str, Any]) -> bool:
    texts = [data.get(name) for name in ("model", "body", "blob")]
    one_body = (data.get("body") is None) != (data.get("blob") is None)
    return isinstance(data["path"], str) and one_body and all(text is None or isinstance(text, str) for text in texts)
