"""Reads documents as the pipeline's children do, and tells what they tried to load."""

from __future__ import annotations

import sys
from typing import Any

from sift.content.extraction import extract

_EVENTS = {
    "open",
    "import",
    "os.listdir",
    "os.scandir",
    "socket.__new__",
    "subprocess.Popen",
    "_thread.start_new_thread",
}


def read(head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """`extract`, with `loaded` in the answer's head: event and name of each attempt (audit events of Python)."""
    loaded: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        # lxml.sax asks for a module that never was, before the one that is there.
        if event in _EVENTS and not str(arguments[0]).startswith("lxml.xml"):
            loaded.append(f"{event} {arguments[0]}")

    sys.addaudithook(watch)
    answer, content = extract(head, body)
    return {**answer, "loaded": loaded}, content
