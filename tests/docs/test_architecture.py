"""ARCHITECTURE.md's tables are those of the code, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from sift.jobs import Status
from sift.store import keys
from tests.docs.pages import ROOT, names, pages, read, rows, section

PAGE = read("ARCHITECTURE.md")
_TEST = re.compile(r"^([\w/]+\.py)::(\w+)$")
_ANY_TEST = re.compile(r"\btest_\w+")


def named_tests(text: str) -> list[str]:
    return [name for name in names(text) if "::" in name]


def missing_tests(text: str, root: Path = ROOT / "tests") -> list[str]:
    """Tests that a page names and that are not there."""
    return [name for name in named_tests(text) if not _exists(name, root)]


def _exists(name: str, root: Path) -> bool:
    match = _TEST.match(name)
    if match is None or not (root / match[1]).is_file():
        return False
    tree = ast.parse((root / match[1]).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(isinstance(node, functions) and node.name == match[2] for node in ast.walk(tree))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    assert missing_tests(page.read_text(encoding="utf-8")) == []


def test_a_test_that_does_not_exist_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_a(): ...\nclass C:\n    def test_b(self): ...\n# test_c\n")
    text = "`test_one.py::test_a` `test_one.py::test_b` `test_one.py::test_c` `test_two.py::test_a` `x::test_a`"
    assert missing_tests(text, tmp_path) == ["test_one.py::test_c", "test_two.py::test_a", "x::test_a"]


def test_no_test_is_named_without_its_file() -> None:
    rest = PAGE
    for name in named_tests(PAGE):
        rest = rest.replace(f"`{name}`", "")
    assert _ANY_TEST.findall(rest) == []


@pytest.mark.parametrize("heading", ["Submit", "What goes wrong, and who repairs it", "Invariants"])
def test_every_claim_of_these_tables_names_a_test(heading: str) -> None:
    claims = [row for row in rows(section(PAGE, heading)) if len(row) in (2, 4) or heading == "Invariants"]
    assert claims
    for row in claims:
        assert named_tests(row[-1]), row[0]


def key_table() -> set[tuple[str, str]]:
    return {(names(row[1])[0], names(row[2])[0]) for row in rows(section(PAGE, "The table"))}


def keys_of_the_code() -> set[tuple[str, str]]:
    """Every function of `sift.store.keys`, called with the placeholders of the page."""
    job, caller = "<job id>", "<tenant>/<actor>"
    arguments: dict[str, tuple[Any, ...]] = {
        "idempotency": ("<sha256>",),
        "caller_live": (caller,),
        "caller_job": (caller, job),
        "all_jobs": (job,),
        "live": ("<shard>",),
        "outbox": ("<shard>",),
        "removals": ("<shard>",),
        "meta": (job,),
        "state": (job,),
        "delivery": (job,),
        "webhook_secrets": (caller,),
        "segment": (job, "<segment>"),
        "outcome": (job, 0),
        "assembly": (job,),
        "pace": ("<host>",),
        "api_key": ("<key id>",),
        "listed_key": ("<key id>",),
    }
    tree = ast.parse(Path(keys.__file__).read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions == set(arguments)
    found = {name: getattr(keys, name)(*values) for name, values in arguments.items()}
    assert found["outcome"] == (f"JOB#{job}#0", "T#000000")
    found["outcome"] = (f"JOB#{job}#<segment>", "T#<index>")
    return set(found.values())


def test_the_key_table_is_that_of_the_code() -> None:
    assert key_table() == keys_of_the_code()


def test_every_status_is_drawn_or_explained_and_stands_in_the_state_table() -> None:
    life = section(PAGE, "Life of a job")
    for status in get_args(Status):
        assert re.search(rf"\b{status}\b", life), status
    table = {status for row in rows(life) for status in row[0].split(", ")}
    assert table == set(get_args(Status))
