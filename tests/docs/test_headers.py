"""docs/api.md has the headers that the API reads and those that it answers with."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import pytest

from tests.docs.codes import read_sources
from tests.docs.pages import names, read, rows, section

#: Said in the table, and made by the resolver or the gateway.
NOT_OURS = {"content-type", "apigw-requestid"}


def documented() -> tuple[set[str], set[str]]:
    """The headers that are sent, and those that are answered."""
    sent: set[str] = set()
    answered: set[str] = set()
    for row in rows(section(read("docs/api.md"), "Headers")):
        (sent if len(row) == 2 else answered).update(names(row[0]))
    return sent, answered


def of_api() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in read_sources().items() if name.startswith("api/")}


def read_by(trees: Mapping[str, ast.Module]) -> set[str]:
    """Names that are looked up in `headers`."""
    return {
        call.args[0].value
        for tree in trees.values()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "get"
        and _is_headers(call.func.value)
        and isinstance(call.args[0], ast.Constant)
    }


def answered_by(trees: Mapping[str, ast.Module]) -> set[str]:
    """Names that are put into `headers`, or into what is passed as such."""
    return {name.lower() for tree in trees.values() for node in ast.walk(tree) for name in _put(node)} - {""}


def _put(node: ast.AST) -> Iterator[str]:
    if (isinstance(node, ast.keyword) and node.arg == "headers") or (
        isinstance(node, ast.Assign) and _is_headers(node.targets[0])
    ):
        yield from _keys(node.value)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_headers(node.value):
        yield from _texts(node.slice)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "json_response":
        for argument in node.args[2:]:
            yield from _keys(argument)


def _keys(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Dict):
        for key in node.keys:
            yield from _texts(key)


def _texts(node: ast.expr | None) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _is_headers(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "headers") or (
        isinstance(node, ast.Attribute) and node.attr == "headers"
    )


def test_the_headers_that_are_read_are_listed() -> None:
    assert documented()[0] == read_by(of_api())


def test_the_headers_of_answers_are_listed() -> None:
    # The body's type is set among the headers of a request, to have it read as JSON.
    assert documented()[1] - NOT_OURS == answered_by(of_api()) - {"content-type"}


@pytest.mark.parametrize(
    "line",
    [
        'headers = {"x-new": "1"}', 'headers["X-New"] = "1"', 'Response(200, headers={"x-new": "1"})',
        'json_response(200, {}, {"x-new": "1"})',
    ],
)  # fmt: skip
def test_a_new_header_is_noticed(line: str) -> None:
    assert answered_by({"api/new.py": ast.parse(line)}) == {"x-new"}


def test_a_header_that_is_read_is_noticed() -> None:
    assert read_by({"api/new.py": ast.parse('event.headers.get("x-new") or headers.get("x-newer", "")')}) == {
        "x-new", "x-newer",
    }  # fmt: skip
