"""The template keeps every house rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.template import account_rules, flow_rules
from tests.template.document import Template

RULES = flow_rules.RULES + account_rules.RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_template_keeps(rule: Callable[[Template], Iterator[str]], template: Template) -> None:
    assert list(rule(template)) == []
