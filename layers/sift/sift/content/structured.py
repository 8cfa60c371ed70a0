"""JSON and JSON Lines, checked and left as they are."""

from __future__ import annotations

import json
from typing import Any

from sift.errors import TargetFailed

JSON_LINES = "application/x-ndjson"
# Python refuses whole numbers of over 4,300 digits, and JSON does not; here no number is looked at.
_read_int = float
_NO_NUMBERS = ("It has NaN or Infinity, which are no JSON.",)


def check_json(text: str, *, declared: bool) -> tuple[Any, str, list[str]]:
    """The value of a JSON document (None for lines of it), its media type, and warnings.

    Several documents, one a line, are JSON Lines under whatever name. `declared`: the server says that it is
    JSON; what is none raises TargetFailed damaged then, and is plain text with a warning otherwise.
    """
    strange: list[str] = []
    try:
        return json.loads(text, parse_int=_read_int, parse_constant=strange.append), "application/json", _warn(strange)
    except (ValueError, RecursionError) as error:
        wrong = error
    try:
        if text.count("\n", 0, len(text.rstrip())) > 0:
            return None, JSON_LINES, check_lines(text)
    except TargetFailed:
        pass
    if declared and text.lstrip().startswith(("{", "[")):
        where = f" (line {wrong.lineno})" if isinstance(wrong, json.JSONDecodeError) else ""
        raise TargetFailed("damaged", f"The JSON document does not parse{where}.", "Use mode raw to get the bytes.")
    return None, "text/plain", ["The server says JSON, and it is not."] if declared else []


def check_lines(text: str) -> list[str]:
    """Warnings of a document with one JSON value a line, blank lines aside; raises TargetFailed damaged."""
    strange: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                json.loads(line, parse_int=_read_int, parse_constant=strange.append)
            except (ValueError, RecursionError) as error:
                raise TargetFailed(
                    "damaged", f"Line {number} is no JSON value.", "Use mode raw to get the bytes."
                ) from error
    return _warn(strange)


def _warn(strange: list[str]) -> list[str]:
    return list(_NO_NUMBERS) if strange else []
