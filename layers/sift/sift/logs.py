"""What log lines are about: ids and hosts, bound where they are known and written by `sift.loglines` on every line.

A line never shows what a caller, a page or a model wrote: no bodies, queries, userinfo, headers or messages of
exceptions that are not ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

_HOST = re.compile(r"[0-9a-z.-]{1,253}|[0-9a-f:.]{2,45}")

_subject: ContextVar[Mapping[str, Any]] = ContextVar("_subject", default={})  # noqa: B039 (never changed in place)


@contextmanager
def about(**ids: Any) -> Iterator[None]:
    """Within it, and in what is started there, lines carry these ids; None adds nothing."""
    token = _subject.set(_subject.get())
    add(**ids)
    try:
        yield
    finally:
        _subject.reset(token)


def add(**ids: Any) -> None:
    """From here to the end of the block that is open, lines carry these ids too."""
    _subject.set({**_subject.get(), **{name: value for name, value in ids.items() if value is not None}})


def subject() -> Mapping[str, Any]:
    """The ids that a line written now is about."""
    return _subject.get()


def host_of(url: str) -> str | None:
    """The host of a URL and nothing else of it; None where that is no plain host name or address."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return None
    return host if host and _HOST.fullmatch(host) else None
