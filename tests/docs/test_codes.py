"""docs/api.md and the source have the same error codes."""

from __future__ import annotations

import re

import pytest

from sift.api.problems import STATUS
from tests.docs.codes import Code, find_codes, lineage, read_sources
from tests.docs.pages import names, read, rows, section

#: Raised on purpose, and never an answer: the API has no status for them.
LOGGED_ONLY = {"unreadable", "bad_settings"}
STATUS_BY_NAME = {kind.__name__: status for kind, status in STATUS.items()}


@pytest.fixture(scope="module")
def codes() -> set[Code]:
    return find_codes(read_sources())


def table(heading: str) -> dict[str, list[str]]:
    """The rows below a heading of docs/api.md, by the code in their first cell."""
    return {names(cells[0])[0]: cells for cells in rows(section(read("docs/api.md"), heading))}


def statuses(codes: set[Code]) -> dict[str, set[int]]:
    """What the API answers with, by code of a request."""
    found: dict[str, set[int]] = {}
    for code in codes:
        if not code.of_target and code.code not in LOGGED_ONLY:
            status = 500 if not code.kind else _status(code.kind)
            found.setdefault(code.code, set()).add(status)
    return found


def _status(kind: str) -> int:
    parents = {cls.__name__: cls.__bases__[0].__name__ for cls in STATUS}
    return next(STATUS_BY_NAME[name] for name in lineage(kind, parents) if name in STATUS_BY_NAME)


def test_codes_of_requests_are_in_the_table_with_their_status(codes: set[Code]) -> None:
    written = table("Errors of a request")
    documented = {code: {int(s) for s in re.findall(r"\d{3}", cells[1])} for code, cells in written.items()}
    assert documented == statuses(codes)


def test_codes_of_targets_are_in_the_table(codes: set[Code]) -> None:
    assert set(table("Errors of a target")) == {code.code for code in codes if code.of_target}


def test_codes_that_no_caller_sees_are_explained(codes: set[Code]) -> None:
    assert {code.code for code in codes} >= LOGGED_ONLY
    assert set(names(section(read("docs/api.md"), "Errors of a request"))) >= LOGGED_ONLY


@pytest.mark.parametrize(("heading", "cells"), [("Errors of a request", 4), ("Errors of a target", 3)])
def test_every_code_says_when_and_what_to_do(heading: str, cells: int) -> None:
    for code, row in table(heading).items():
        assert len(row) == cells, code
        assert all(row), code


ERRORS = """
class SiftError(Exception): ...
class TargetFailed(SiftError): ...
class Busy(TargetFailed):
    def __init__(self, detail): super().__init__("busy", detail)
class Other(Exception): ...
"""
SERVICE = """
def _end(index, code): ...
def look(flag):
    code = "one" if flag else "two"
    if flag: raise errors.SiftError(code, "detail")
    raise TargetFailed("three", "detail")
async def more():
    try: _end(0, "four")
    except Other("none"): raise Busy("not a code")
    return SiftError(unknown)
"""


def test_the_walk_finds_each_way_to_write_a_code() -> None:
    found = find_codes({"errors.py": ERRORS, "services/look.py": SERVICE})
    assert found == {
        Code("busy", "Busy", True),
        Code("one", "SiftError", False),
        Code("two", "SiftError", False),
        Code("three", "TargetFailed", True),
        Code("four", "", True),
    }


def test_a_new_code_is_noticed() -> None:
    sources = read_sources()
    sources["services/submit.py"] += '\n\ndef new() -> Invalid:\n    return Invalid("brand_new", "x")\n'
    assert "brand_new" in statuses(find_codes(sources))
    assert "brand_new" not in table("Errors of a request")
