"""Finds how many tokens an answer says it used, while the answer passes by, in memory that its size does not change.

Known are the bodies and event streams of OpenAI (chat, completions, embeddings, responses), Anthropic (messages) and
Ollama (its own API), and so what speaks like them: vLLM, LiteLLM and others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: A document (a body, or a line of a stream) up to this many bytes is read whole; of a longer one, what matters.
WHOLE_BYTES = 64 * 1024
#: A value that is longer is no count of tokens.
VALUE_BYTES = 8 * 1024
#: What is looked at in one long document before it is given up: a second or two of a processor.
MAX_TOKENS = 2_000_000
MAX_COUNTS = 64
MAX_NAME_CHARS = 100

_LINES = re.compile(r"\s*(text/event-stream|application/x-ndjson|application/jsonl)\s*(;|$)", re.IGNORECASE)
_JSON = re.compile(r"\s*[\w.-]+/(?:[\w.-]+\+)?json\s*(;|$)", re.IGNORECASE)

#: Where counts stand: in the object itself, of a final event of OpenAI's responses, of Anthropic's first event.
_USAGE = ("usage",)
_NESTED = (("message", "usage"), ("response", "usage"))
#: Ollama's stand one by one.
_SINGLE = ("prompt_eval_count", "eval_count")
_PATHS = frozenset({_USAGE, *_NESTED, *((name,) for name in _SINGLE)})
#: Many events of a stream say that there is none yet.
_HINT = re.compile(rb'usage"\s*:\s*\{|eval_count"')

_MARK = re.compile(rb'["{}\[\],:]')  # near the top, where keys matter
_DEEP = re.compile(rb'["{}\[\]]')  # further down
_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)  # of a string, up to its end or a lone backslash
_NEAR = 2
_KEY_BYTES = 32


class Usage:
    """Feed it a body as it arrives; `end` tells what the body said last."""

    def __init__(self, media_type: str) -> None:
        self._by_line = bool(_LINES.match(media_type))
        self._document = _Document() if self._by_line or _JSON.match(media_type) else None
        self._counts: dict[str, Any] = {}

    def feed(self, data: bytes) -> None:
        """Some more of the body."""
        if self._document is None:
            return
        if not self._by_line:
            self._document.feed(data)
            return
        first, last = data.find(b"\n"), data.rfind(b"\n")
        if first < 0:
            self._document.feed(data)
            return
        self._pass_line(data[:first])
        between = data[first:last]
        if _may_tell(between):  # else its lines, however many they are, cost nothing
            for line in filter(_may_tell, between.split(b"\n")):
                self._pass_line(line)
        self._document.feed(data[last + 1 :])

    def end(self) -> Mapping[str, Any] | None:
        """The body is over: the counts in it, by the names that the gateway gave them; None without any.

        Values are whole numbers, or objects of whole numbers (`prompt_tokens_details`).
        """
        if self._document is not None:
            self._end()
        return self._counts or None

    def _pass_line(self, end: bytes) -> None:
        assert self._document is not None
        self._document.feed(end)
        self._end()

    def _end(self) -> None:
        """A document is over; what it says wins over what earlier ones of the stream said."""
        assert self._document is not None
        document, self._document = self._document, _Document()
        for name, count in document.end().items():
            if name in self._counts or len(self._counts) < MAX_COUNTS:
                self._counts[name] = count


class _Document:
    """One JSON object, in pieces. `data: ` of an event stream may stand before it."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0
        self._scanner: _Scanner | None = None

    def feed(self, data: bytes) -> None:
        if self._scanner is None:
            self._held.append(data)
            self._size += len(data)
            if self._size <= WHOLE_BYTES:
                return
            self._scanner, data, self._held = _Scanner(), b"".join(self._held), []
        self._scanner.feed(data)

    def end(self) -> dict[str, Any]:
        if self._scanner is not None:
            return _collect(self._scanner.found)
        text = b"".join(self._held)
        if not _may_tell(text):
            return {}
        document = _parse(text.strip().removeprefix(b"data:"))
        if not isinstance(document, dict):
            return {}
        found: dict[tuple[str, ...], Any] = {(name,): document.get(name) for name in ("usage", *_SINGLE)}
        for parent, name in _NESTED:
            inner = document.get(parent)
            found[parent, name] = inner.get(name) if isinstance(inner, dict) else None
        return _collect(found)


class _Scanner:
    """Follows the strings and brackets of one JSON object, and keeps the values at `_PATHS`."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, ...], Any] = {}
        self._rest = MAX_TOKENS
        self._depth = 0
        self._in_string = False
        self._held = b""  # a backslash whose other half is still to come
        self._text = b""  # the string that was read last, or its beginning
        self._parent = ""
        self._path: tuple[str, ...] = ()
        self._value: bytearray | None = None  # the value at `_path`, being read
        self._over = False

    def feed(self, data: bytes) -> None:
        data, self._held = self._held + data, b""
        at, size = 0, len(data)
        while at < size and not self._over:
            if self._in_string:
                at = self._pass_string(data, at)
                continue
            mark = (_MARK if self._depth <= _NEAR else _DEEP).search(data, at)
            if mark is None:
                self._keep(data[at:])
                return
            self._keep(data[at : mark.start()])
            at = mark.end()
            self._rest -= 1
            self._step(mark[0])

    def _pass_string(self, data: bytes, at: int) -> int:
        inside = _INSIDE.match(data, at)
        assert inside is not None
        end = inside.end()
        # One byte more than a key may have tells that it is longer.
        self._text += data[at : min(end, at + _KEY_BYTES + 1 - len(self._text))]
        self._keep(data[at:end])
        if end == len(data):
            return end
        if data[end : end + 1] == b"\\":
            self._held = b"\\"
            return len(data)
        self._in_string = False
        self._keep(b'"')
        return end + 1

    def _step(self, mark: bytes) -> None:
        if self._rest < 0:
            self._stop()
        elif mark == b'"':
            self._in_string, self._text = True, b""
            self._keep(mark)
        elif mark in b"{[":
            if self._depth == 0 and mark == b"[":
                self._stop()
            self._depth += 1
            self._keep(mark)
        elif mark in b"}]":
            self._depth -= 1
            if self._value is not None and self._depth < len(self._path):
                self._take()
            self._keep(mark)
            if self._depth <= 0:
                self._over = True
        elif mark == b":" and self._value is None:
            self._begin()
        elif mark == b"," and self._value is not None and self._depth == len(self._path):
            self._take()
        else:
            self._keep(mark)

    def _begin(self) -> None:
        """A key has been read: is its value one to keep?"""
        name = self._text.decode("latin-1")
        path: tuple[str, ...] = (name,) if self._depth == 1 else (self._parent, name)
        if self._depth == 1:
            self._parent = name
        if self._depth == len(path) and path in _PATHS:
            self._path, self._value = path, bytearray()

    def _keep(self, data: bytes) -> None:
        if self._value is not None:
            self._value += data[: VALUE_BYTES + 1 - len(self._value)]

    def _take(self) -> None:
        if self._value is not None and len(self._value) <= VALUE_BYTES:
            self.found[self._path] = _parse(bytes(self._value))
        self._value = None

    def _stop(self) -> None:
        self._over, self._value = True, None
        self.found.clear()


def _may_tell(text: bytes) -> bool:
    return _HINT.search(text) is not None


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _collect(found: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    counts: dict[str, Any] = {}
    for path in (*_NESTED, _USAGE):
        value = found.get(path)
        if isinstance(value, dict):
            counts.update(_clean(value))
    for name in _SINGLE:
        counts.update(_clean({name: found.get((name,))}))
    return counts


def _clean(value: Mapping[str, Any], *, nested: bool = True) -> dict[str, Any]:
    """The whole numbers of an object, and of the objects in it."""
    kept: dict[str, Any] = {}
    for name, count in list(value.items())[:MAX_COUNTS]:
        if not _is_name(name):
            continue
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**53:
            kept[name] = count
        elif isinstance(count, dict) and nested and (inner := _clean(count, nested=False)):
            kept[name] = inner
    return kept


def _is_name(text: str) -> bool:
    """Whether it can be stored and shown as it is: half of a surrogate pair can't be."""
    return 0 < len(text) <= MAX_NAME_CHARS and text.isascii() and text.isprintable()
