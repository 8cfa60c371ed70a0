"""Which part of sift may import which: the arrows go one way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "layers" / "sift"
PORTED = {"store", "queue", "blobs", "events"}

#: The modules of the package itself that are more than the domain.
PART_OF = {
    **dict.fromkeys(("bootstrap", "environment", "settings"), "composition"),
    **dict.fromkeys(("emf", "loglines"), "reporting"),
    **dict.fromkeys(("connections", "gateway", "completions"), "gateway"),
    **dict.fromkeys(("aws", "jwks", "secrets", "upstream"), "adapters"),
}
#: What each part may import besides itself.
MAY = {
    "client": {"services", "adapters", "domain"},  # an operator makes keys with it
    "functions": {"api", "composition", "reporting", "ports", "domain"},
    "api": {"composition", "services", "ports", "domain"},
    "composition": {"services", "adapters", "content", "gateway", "domain"},
    "reporting": {"domain"},
    "services": {"ports", "domain"},
    "adapters": {"ports", "content", "gateway", "domain"},
    "content": {"gateway", "domain"},
    "gateway": {"domain"},
    "ports": {"domain"},
    "domain": set(),
}


def part_of(module: str) -> str:
    """The part that `sift.a.b` belongs to."""
    names = module.split(".")[1:]
    if names[0] in PORTED:
        return "ports" if names[1:] == ["ports"] else "adapters"
    if names[0] in {"api", "services", "content"}:
        return names[0]
    return PART_OF.get(names[0], "domain")


def modules() -> Iterator[tuple[Path, str, str]]:
    """Every file with its name as a module, and the part that it belongs to."""
    for path in (LAYER / "sift").rglob("*.py"):
        module = ".".join(path.relative_to(LAYER).with_suffix("").parts)
        if path.name != "__init__.py":
            yield path, module, part_of(module)
    for folder, part in (("functions", "functions"), ("client", "client")):
        for path in (ROOT / folder).rglob("*.py"):
            yield path, ".".join(path.relative_to(ROOT).with_suffix("").parts), part


KNOWN = {module for _, module, _ in modules()}
KNOWN |= {module.rpartition(".")[0] for module in KNOWN if module.count(".") > 1}  # a package brings what is in it


def imported(source: str) -> set[str]:
    """The modules of sift that a source imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            within = {f"{node.module}.{name.name}" for name in node.names}
            found |= within & KNOWN or {node.module}
    return {module for module in found if module in KNOWN}


def wrong(source: str, part: str) -> set[str]:
    """What this source of a part imports and should not."""
    return {module for module in imported(source) if part_of(module) not in MAY[part] | {part}}


def test_the_parts_lie_above_one_another() -> None:
    TopologicalSorter(MAY).prepare()  # raises CycleError
    assert {part for _, _, part in modules()} == set(MAY)


def test_imports_go_one_way() -> None:
    assert {module: found for path, module, part in modules() if (found := wrong(path.read_text(), part))} == {}


@pytest.mark.parametrize(
    ("source", "part", "found"),
    [
        ("from sift.api.views import job", "services", {"sift.api.views"}),
        ("from sift.api import views, models", "services", {"sift.api.views", "sift.api.models"}),
        ("import sift.services.work", "domain", {"sift.services.work"}),
        ("def late():\n    from sift.store.dynamo import DynamoStore", "services", {"sift.store.dynamo"}),
        ("from sift import aws, jobs", "services", {"sift.aws"}),
        ("from sift import content", "services", {"sift.content"}),
        ("from sift import store as tables", "services", {"sift.store"}),
        ("from sift.queue.ports import Queue", "services", set()),
        ("from sift.queue.sqs import SqsQueue", "composition", set()),
    ],
)
def test_a_wrong_arrow_is_seen(source: str, part: str, found: set[str]) -> None:
    assert wrong(source, part) == found
