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
# lxml.sax and feedparser ask for modules that are nowhere, before those that are there.
_NEVER_THERE = ("lxml.xml", "drv_libxml2")


def read(head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """`extract`, with `loaded` in the answer's head: event and name of each attempt (audit events of Python)."""
    loaded: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _EVENTS and not str(arguments[0]).startswith(_NEVER_THERE):
            loaded.append(f"{event} {arguments[0]}")

    sys.addaudithook(watch)
    answer, content = extract(head, body)
    return {**answer, "loaded": loaded}, content
