"""What happened in a run, kept as objects and put into words only when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sift.jobs import Flight, Meta, State
from sift.messages import TargetMessage
from sift.store.ports import Changed, Outcome, Submission

Line = tuple[float, str, Any, str]

_JOB = re.compile(r"job_[0-9A-Z]{26}")


def shorten(value: Any, now: int) -> str:
    """A value in a few characters; times relative to `now` (ms)."""

    def short(value: Any) -> str:
        match value:
            case Changed(ok, state):
                return f"{'ok' if ok else 'refused'} {short(state)}"
            case State():
                flight = " ".join(f"{index}:{short(entry)}" for index, entry in value.flight.items())
                error = f" {value.error}" if value.error else ""
                counts = f"{value.done}+{value.failed}/{value.released}/{value.total}"
                return f"<{value.status}{error} {counts} {{{flight}}}>"
            case Flight(until, claims, since):
                return f"{(until - now) / 1000:+.1f}s#{claims}" + ("b" if since else "")
            case Meta():
                return value.job_id
            case Submission():
                record = value.idempotency
                key = record.key[:6] if record else "fresh"
                job, total = value.meta, value.state.total
                return f"{job.job_id} of {job.caller}, {total} targets, {key}, stale {value.stale_job}"
            case Outcome():
                return f"{value.index}:{value.status} lease {(value.lease - now) / 1000:+.1f}s"
            case TargetMessage():
                return f"{value.job_id}[{value.index}]"
            case str():
                return value[:40]
            case bytes():
                return f"{len(value)} bytes"
            case int() if abs(value - now) < 10**9:
                return f"{(value - now) / 1000:+.1f}s"
            case Mapping():
                return "{" + " ".join(f"{short(k)}:{short(v)}" for k, v in list(value.items())[:8]) + "}"
            case list() | tuple():
                return "[" + " ".join(short(one) for one in value[:8]) + (" ...]" if len(value) > 8 else "]")
        return str(value)[:60]

    return short(value)


class Call:
    """A call to a port and its answer."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], answer: Any, now: int) -> None:
        self._parts = name, args, kwargs, answer, now

    def __str__(self) -> str:
        name, args, kwargs, answer, now = self._parts
        given = ", ".join([shorten(arg, now) for arg in args] + [f"{k}={shorten(v, now)}" for k, v in kwargs.items()])
        return f"{name}({given}) -> {shorten(answer, now)}"


def render(lines: Iterable[Line], job_id: str | None = None) -> str:
    """The trace as text, job ids as J1, J2 ... in the order of their making; of one job only when it is named."""
    names: dict[str, str] = {}

    def alias(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"J{len(names) + 1}")

    texts = []
    for moment, actor, what, remark in lines:
        text = str(what)
        line = f"{moment:10.3f}  {actor:<12} {text}" + (f"  [{remark}]" if remark else "")
        shown = _JOB.sub(alias, line)
        if job_id is None or job_id in text or not _JOB.search(text):
            texts.append(shown)
    return "\n".join(texts)
