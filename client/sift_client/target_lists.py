"""Lists of targets in files: one address or one JSON object per line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

from sift_client.errors import SiftClientError
from sift_client.shapes import Target

HINT = 'Each line holds an address or a JSON object like {"url": "https://...", "options": {"mode": "text"}}.'


def read_targets(name: str) -> list[Target]:
    """The targets of a file, `-` for standard input; empty lines and lines that start with # are skipped.

    Raises `SiftClientError` that names the line.
    """
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SiftClientError(f"{name} cannot be read: {reason}", HINT) from None
    targets = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if line and not line.startswith("#"):
            targets.append(_read_line(line, f"{name}, line {number}"))
    return targets


def _read_line(line: str, where: str) -> Target:
    if not line.startswith("{"):
        return {"url": line}
    try:
        found: Any = json.loads(line)
    except ValueError as error:
        raise SiftClientError(f"{where}: not JSON ({error})", HINT) from None
    if not isinstance(found.get("url"), str):
        raise SiftClientError(f"{where}: no url", HINT)
    return cast(Target, found)
