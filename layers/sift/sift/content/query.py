"""jq over JSON: one output a line. It runs in a document's child only; nothing but the process's end stops it."""

from __future__ import annotations

import io
import re
from typing import Any

from sift.errors import TargetFailed

MAX_OUTPUT_CHARS = 10_000_000

# Where the compiler found it: "foo/0 is not defined at <top-level>, line 2, column 1:" and the lines of the program.
_PLACE = re.compile(r" at <top-level>, line (?P<line>\d+), column (?P<column>\d+):?.*", re.S)
_MODULES = re.compile(r"\b(?:import|include|module)\b")
# What jq writes in place of values more than 10,000 deep, whatever that does to the JSON.
_TOO_DEEP = "<skipped: too deep>"
# Where a program halts by itself, the library says nothing of it and goes on with the next document.
_PRELUDE = """\
def halt_error: error("halted: " + if type == "string" then . else tojson end); def halt_error($status): halt_error; \
"""
_HINT = "Correct the program; see the jq manual for its language."


def run_program(program: str, text: str, *, damaged: bool = True) -> tuple[str, int]:
    """All outputs of `program` for each JSON document in `text`, as compact JSON one a line, and how many they are.

    Documents stand one after the other, each on a line of its own or not; the program runs on each in turn.
    `damaged`: text that is no JSON is a damaged document, else one that jq is no filter for.
    Raises TargetFailed bad_jq, damaged, filter_limit, no_match.
    """
    compiled = _compile(program)
    if reason := _refuse_json(text):
        raise _no_json(reason, damaged)
    outputs, count = io.StringIO(), 0
    try:
        for output in compiled.input_text(text):
            if _TOO_DEEP in output and _refuse_json(output):
                raise TargetFailed("filter_limit", "An output is nested too deep to be written.", "Flatten it.")
            outputs.write(output)
            outputs.write("\n")
            count += 1
            if outputs.tell() > MAX_OUTPUT_CHARS:
                hint = "Select less, or put a `limit` around it."
                raise TargetFailed("filter_limit", f"The program's output is over {MAX_OUTPUT_CHARS} characters.", hint)
    except ValueError as error:
        raise TargetFailed("bad_jq", _explain(str(error)), _HINT) from None
    if not count:
        raise TargetFailed("no_match", "The program has no output.", "Try a wider one: `.` shows the document.")
    return outputs.getvalue(), count


def _refuse_json(text: str) -> str:
    """Why jq does not read a text as JSON, "" when it does."""
    import jq  # type: ignore[import-not-found]

    try:
        for _ in jq.compile("empty").input_text(text):
            pass
    except ValueError as error:
        return _tidy(str(error))
    return ""


def _compile(program: str) -> Any:
    """The program with its outputs as JSON text, in which numbers keep their digits."""
    import jq

    if "\x00" in program:
        raise TargetFailed("bad_jq", "The program holds a zero byte.", _HINT)
    try:
        # In brackets no module can be imported; an `import` that names its own search path would read files.
        compiled = jq.compile(f"{_PRELUDE}(\n{program}\n) | tojson")
    except ValueError as error:
        if _MODULES.search(program):
            detail = f"Modules cannot be used, or: {_place(str(error), 1)}"
        else:
            detail = _reason(program) or _place(str(error), 1)
    else:
        detail = _reason(program)  # "1) | (2" is only valid with our brackets
    if detail:
        raise TargetFailed("bad_jq", f"The program does not compile: {detail}", _HINT)
    return compiled


def _reason(program: str) -> str:
    """Why a program without modules does not compile, "" when it does."""
    import jq

    try:
        jq.compile(program)
    except ValueError as error:
        return _place(str(error), 0)
    return ""


def _place(message: str, lines_before: int) -> str:
    """The compiler's first complaint in one line, its line counted from the program's own first."""
    first = message.removeprefix("jq: error: ").split("\njq: ")[0]
    found = _PLACE.search(first)
    text = _tidy(first[: found.start()] if found else first)
    return f"{text} (line {int(found['line']) - lines_before}, column {found['column']})" if found else text


def _explain(message: str) -> str:
    if message == "break":
        return "The program fails: there is no further input; it is run on each document by itself."
    return f"The program fails: {_tidy(message)}"


def _no_json(reason: str, damaged: bool) -> TargetFailed:
    if damaged:
        return TargetFailed("damaged", f"The JSON document does not parse: {reason}", "Use mode raw to get the bytes.")
    return TargetFailed("bad_jq", f"The document is not JSON: {reason}", "jq is for JSON; use `grep` for other text.")


def _tidy(text: str) -> str:
    """A message of a library on one line of bounded length."""
    return " ".join(text.split())[:300]
