"""trafilatura with less to do for the same text: searches for XPath, and no copy or count that nobody looks at."""

from __future__ import annotations

import functools
from copy import copy
from typing import Any

from sift.content.expressions import replace


@functools.cache
def hasten() -> None:
    """Put it into effect, for all of this process; calls after the first do nothing."""
    from trafilatura import core, htmlprocessing, xpaths

    for expressions in vars(xpaths).values():
        if isinstance(expressions, list):
            expressions[:] = [replace(expression) for expression in expressions]

    prepare, test = core._prepare_tree, htmlprocessing.link_density_test

    def prepare_tree(tree: Any, options: Any, url: str | None) -> tuple[Any, Any]:
        if options.comments or not options.fast:
            return prepare(tree, options, url)
        cleaned = htmlprocessing.tree_cleaning(copy(tree), options)
        return htmlprocessing.convert_tags(cleaned, options, url), None  # in place of a copy to compare with

    def link_density_test(element: Any, favor_precision: bool = False) -> tuple[bool, bool]:
        if next(element.iterdescendants("ref"), None) is None:
            return False, False
        return test(element, favor_precision)

    core._prepare_tree = prepare_tree
    htmlprocessing.link_density_test = link_density_test
