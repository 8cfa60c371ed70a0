"""Runs inside a built function, on the bare interpreter: imports its handler, and looks up all its imports.

Started as `python -I -S artifact.py HANDLER WITHOUT ROOT...`: the roots are the function's artifact and its
layers, in search order; WITHOUT lists sift's packages and modules that this function never imports, comma-separated.
"""

import ast
import importlib
import importlib.util
import sys
from pathlib import Path


class Imports(ast.NodeVisitor):
    """Top-level packages that code imports when it runs, however late."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        self.names.update(alias.name.split(".")[0] for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and not node.level:
            self.names.add(node.module.split(".")[0])

    def visit_If(self, node: ast.If) -> None:
        # What only the type checker sees is not in the artifact.
        if "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                self.visit(other)
        elif isinstance(node.test, ast.Compare) and ast.unparse(node.test.left) == "sys.version_info":
            # Only the branch of the Python that runs the function.
            holds = eval(ast.unparse(node.test), {"sys": sys})
            for other in node.body if holds else node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)


def missing_imports(root: Path, without: list[str]) -> list[str]:
    """Imports of the code under `root` that lead nowhere, lazy ones included."""
    missing = []
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in without:
            imports = Imports()
            imports.visit(ast.parse(path.read_text()))
            missing += [f"{name} in {path}" for name in imports.names if not importlib.util.find_spec(name)]
    return missing


def main(handler: str, without: str, *roots: str) -> None:
    sys.path[:0] = roots
    module, function = handler.split(".")
    if not callable(getattr(importlib.import_module(module), function)):
        sys.exit(f"{handler} is not a function")
    sift = Path(importlib.import_module("sift").__path__[0])
    missing = missing_imports(Path(roots[0]), []) + missing_imports(sift, without.split(","))
    if missing:
        sys.exit(f"not in the artifact: {missing}")


main(*sys.argv[1:])
