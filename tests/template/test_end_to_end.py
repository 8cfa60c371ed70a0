"""The end-to-end suite calls every route of the template: a new one needs a test there."""

from __future__ import annotations

import ast
import re

from tests.template.document import ROOT, Template, events, functions

ROUTE = re.compile(r"(GET|POST|PUT|PATCH|DELETE) /\S*")


def test_the_end_to_end_suite_calls_every_route(template: Template) -> None:
    called = {
        node.value
        for path in sorted((ROOT / "tests" / "e2e").glob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ROUTE.fullmatch(node.value)
    }
    service = (ROOT / "tests" / "e2e" / "service.py").read_text()
    called |= {found[0] for found in re.finditer(ROUTE.pattern.replace(r"\S*", r'[^\s"]*'), service)}
    made = {
        f"{event['Method']} {event['Path']}"
        for function in functions(template).values()
        for event in events(function, "HttpApi")
    }
    assert called == made
