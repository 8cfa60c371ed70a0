"""Every error code in the source of sift, found by walking it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT

SOURCE = ROOT / "layers" / "sift" / "sift"
BASE = "SiftError"
#: What becomes of a target; the rest becomes of a request.
TARGET_CLASSES = {"TargetFailed", "TargetBusy", "TargetCut"}


@dataclass(frozen=True)
class Code:
    """A code, the class of error that carries it ("" where it is written without one), and whose error it is."""

    code: str
    kind: str
    of_target: bool


def read_sources() -> dict[str, str]:
    """The source files by their path below the package."""
    return {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}


def find_codes(sources: Mapping[str, str]) -> set[Code]:
    """All codes that the sources can raise or write."""
    trees = {name: ast.parse(text) for name, text in sources.items()}
    parents = _error_classes(trees.values())
    fixed = {name for tree in trees.values() for name in _classes_with_one_code(tree)}
    found: set[Code] = set()
    for name, tree in trees.items():
        found |= set(_raised(tree, parents, fixed))
        found |= {Code(code, "", _is_of_target(name)) for code in _passed(tree)}
    return found


def lineage(kind: str, parents: Mapping[str, str]) -> list[str]:
    """A class of error and those it comes from."""
    line = [kind]
    while line[-1] in parents:
        line.append(parents[line[-1]])
    return line


def _error_classes(trees: Iterable[ast.Module]) -> dict[str, str]:
    """Class of error to its base."""
    bases = {
        node.name: base.id
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, ast.Name)
    }
    return {name: base for name, base in bases.items() if BASE in lineage(name, bases)}


def _classes_with_one_code(tree: ast.Module) -> Iterator[str]:
    """Classes that are made without a code, since their `__init__` knows it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            own = [inner for inner in node.body if isinstance(inner, ast.FunctionDef) and inner.name == "__init__"]
            if own and "code" not in [argument.arg for argument in own[0].args.args]:
                yield node.name


def _raised(tree: ast.Module, parents: Mapping[str, str], fixed: set[str]) -> Iterator[Code]:
    """Codes given to a class of error, in a call of it or in its own `super().__init__`."""
    for scope in ast.walk(tree):
        if isinstance(scope, ast.ClassDef) and scope.name in parents:
            for call in _calls(scope):
                if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__":
                    yield from _codes(call, scope, scope.name, parents)
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for call in _calls(scope):
                if (kind := _name(call.func)) in parents and kind not in fixed:
                    yield from _codes(call, scope, kind, parents)


def _codes(call: ast.Call, scope: ast.AST, kind: str, parents: Mapping[str, str]) -> Iterator[Code]:
    of_target = bool(TARGET_CLASSES & set(lineage(kind, parents)))
    for code in _texts(call.args[0], scope) if call.args else ():
        yield Code(code, kind, of_target)


def _passed(tree: ast.Module) -> Iterator[str]:
    """Codes given to a function of the module that has a parameter `code`."""
    places = {
        node.name: [argument.arg for argument in node.args.args].index("code")
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and "code" in [argument.arg for argument in node.args.args]
    }
    for call in _calls(tree):
        place = places.get(_name(call.func))
        if place is not None and place < len(call.args):
            yield from _texts(call.args[place], tree)


def _texts(value: ast.expr, scope: ast.AST) -> Iterator[str]:
    """The texts that an argument can be: written there, or assigned to its name in the same function."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from _texts(value.body, scope)
        yield from _texts(value.orelse, scope)
    elif isinstance(value, ast.Name):
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and any(_is_variable(target, value.id) for target in node.targets):
                # A variable that is assigned another one would not say what it can be.
                yield from () if isinstance(node.value, ast.Name) else _texts(node.value, scope)


def _calls(scope: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(scope) if isinstance(node, ast.Call))


def _is_variable(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_of_target(name: str) -> bool:
    return not Path(name).as_posix().startswith("api/")
