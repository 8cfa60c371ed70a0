"""Searches find what lxml's XPath finds, element for element."""

from __future__ import annotations

import random
from typing import Any

import pytest
from lxml import etree  # type: ignore[import-untyped]
from lxml.html import document_fromstring  # type: ignore[import-untyped]
from trafilatura import xpaths

from sift.content import expressions
from sift.content.expressions import Search, replace

TAGS = ("div", "section", "article", "main", "p", "span", "ul", "ol", "list", "item", "details", "aside", "h1", "em")
NAMES = ("id", "class", "role", "style", "itemprop", "aria-hidden", "data-component", "data-lp-replacement-content")
VALUES = (
    "", "post", "entry", "articleBody", "article-body", "entry-content x", "fulltext", "FullText", "story", "main",
    "main-content", "Main-Content", "Page-content", "comments", "Commentary", "comment-list", "commentlist reply-1",
    "share", "sharing", "social", "cookie", "nav", "Nav", "navigation", "footer", "related", "widget", "ad-", " ad ",
    "hidden", "display:none", "display: none", "true", "MostPopularStories", "Teaser", "caption", "infinite-scroll",
    "mvp-post-add-box", "elementor-share-buttons", "respond", "x-hidden", "hide-print", "plain",
)  # fmt: skip


def originals() -> list[Any]:
    """trafilatura's expressions as they are before anything is put in their place."""
    found = []
    for name, value in sorted(vars(xpaths).items()):
        if isinstance(value, list):
            found += [(f"{name}[{place}]", expression.path) for place, expression in enumerate(value)]
    return found


def compile_path(path: str) -> Any:
    return etree.XPath(path, namespaces={"re": xpaths.REGEXP_NS})


def grow(chance: random.Random) -> Any:
    """A tree with names and values that the expressions look for, in any order and anywhere."""
    parts = []
    open_tags: list[str] = []
    for _ in range(200):
        if open_tags and chance.random() < 0.45:
            parts.append(f"</{open_tags.pop()}>")
            continue
        tag = chance.choice(TAGS)
        stated = "".join(
            f' {name}="{chance.choice(VALUES)}"' for name in chance.sample(NAMES, chance.choice((0, 0, 1, 2, 3)))
        )
        parts.append(f"<{tag}{stated}>t<!-- c -->")
        open_tags.append(tag)
    return document_fromstring("<html><body>" + "".join(parts) + "</body></html>")


@pytest.mark.parametrize("seed", range(20))
def test_each_of_trafilaturas_expressions_finds_the_same(seed: int) -> None:
    chance = random.Random(seed)
    trees = [grow(chance) for _ in range(5)]
    for name, path in originals():
        expression = compile_path(path)
        search = replace(expression)
        for tree in trees:
            assert search(tree) == expression(tree), name
            assert search(tree) == expression(tree), name  # from what it remembers


def test_those_that_take_the_time_are_searches() -> None:
    pruning = (
        *xpaths.RAW_TREE_PRUNE_XPATH,
        *xpaths.REMOVE_COMMENTS_AND_LISTS_XPATH,
        *xpaths.OVERALL_DISCARD_XPATH,
        *xpaths.TEASER_DISCARD_XPATH,
        *xpaths.DISCARD_IMAGE_ELEMENTS,
        *(xpaths.BODY_XPATH[place] for place in (0, 2, 3)),
    )
    assert all(isinstance(replace(expression), Search) for expression in pruning)


@pytest.mark.parametrize(
    "path",
    [
        "//div[@id]",
        ".//div",
        ".//*[self::div]",
        ".//*[@class='a' and @id='b']",
        ".//*[not(@class)]",
        ".//*[contains(@class, @id)]",
        ".//*[string-length(@class)]",
        ".//*[re:test(@class, 'a', 'm')]",
        ".//*[@class='a']/p",
        ".//*[@class='a'][2]",
        ".//*[@class='a'][1][@id]",
        ".//*[@class='a']|.//p",
        ".//*[translate(@id, 'ab', 'c')='c']",
        ".//*[@class='a'",
        ".//*[text()='a']",
    ],
)
def test_what_it_does_not_understand_stays_what_it_is(path: str) -> None:
    class Expression:
        def __init__(self) -> None:
            self.path = path

    expression = Expression()
    assert replace(expression) is expression


def test_more_sets_of_attributes_than_it_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "MAX_JUDGED", 3)
    tree = document_fromstring("".join(f"<p class='a{number}'>t</p>" for number in range(20)))
    search = Search(".//*[self::p][re:test(@class, 'a[13579]$')]")
    assert [element.get("class") for element in search(tree)] == ["a1", "a3", "a5", "a7", "a9"]
    assert len(search._judged) == 3
