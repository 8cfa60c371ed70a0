"""The template as its rules read it."""

from __future__ import annotations

import pytest

from tests.template.document import Template, load


@pytest.fixture(scope="session")
def template() -> Template:
    return load()
