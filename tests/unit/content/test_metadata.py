"""What a page says of itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
import turbohtml

from sift.content.metadata import read_head
from tests.unit.content.reading import read

PROSE = "<p>The harbour authority published a long statement on the state of the northern pier this morning.</p>" * 6


def head(markup: str, base: str = "https://site.test/dir/page") -> dict[str, str]:
    return read_head(turbohtml.parse(f"<html><head>{markup}</head><body></body></html>", positions=False), base)


def schema(data: Any) -> str:
    return f'<script type="application/ld+json">{json.dumps(data)}</script>'


def test_open_graph_and_meta_tags() -> None:
    found = head(
        '<meta property="og:title" content=" A  pier "><meta name="Author" content="Ada">'
        "<meta name=description content=D>"
        '<meta property="article:published_time" content="2026-03-02T10:00:00Z">'
        '<meta property="og:locale" content="en_GB">'
        '<meta property="og:site_name" content="The Port"><meta property="og:image" content="/i.png">'
        '<meta property="og:image" content="/second.png">'
    )
    assert found == {
        "title": "A pier",
        "author": "Ada",
        "description": "D",
        "published": "2026-03-02T10:00:00Z",
        "language": "en-GB",
        "site_name": "The Port",
        "image": "https://site.test/i.png",
    }


def test_schema_org() -> None:
    graph = [
        {"@type": "WebPage", "name": "The page", "datePublished": "2020-01-01"},
        {"@type": "WebSite", "name": "The Port"},
        {
            "@type": ["NewsArticle"],
            "headline": "A pier",
            "author": [{"@type": "Person", "name": "Ada"}, "Bea", {"name": "https://x.test/"}],
            "datePublished": "2026-03-02",
            "inLanguage": "en",
            "image": [{"url": "//i.test/p.png"}],
            "publisher": {"name": "Publisher"},
            "description": "D",
        },
    ]
    assert head(schema({"@context": "https://schema.org", "@graph": graph})) == {
        "title": "A pier",
        "author": "Ada, Bea",
        "published": "2026-03-02",
        "language": "en",
        "image": "https://i.test/p.png",
        "site_name": "The Port",
        "description": "D",
    }


def test_an_address_is_no_author() -> None:
    assert "author" not in head('<meta property="article:author" content="https://social.test/ada">')
    assert head('<meta name="author" content="//x"><meta name="dc.creator" content="Ada">')["author"] == "Ada"


def test_a_broken_image_address_is_left_out() -> None:
    assert head('<meta property="og:image" content="http://[bad">') == {}


@pytest.mark.parametrize(
    "data",
    [None, 7, [], {}, {"@type": 7}, {"@type": "Article", "author": 7, "headline": {"a": 1}, "image": []}, [[["x"]]]],
)
def test_schema_org_of_wrong_types(data: Any) -> None:
    assert head(schema(data)) == {}


def test_schema_org_that_never_ends() -> None:
    deep: dict[str, Any] = {"@type": "Article", "headline": "found"}
    for _ in range(20):
        deep = {"@graph": [deep]}
    assert head(schema(deep)) == {"title": "found"}
    assert len(head(schema([{"@graph": [{}] * 1000}] * 1000))) == 0


PAGE = f"""<!doctype html><html lang="en"><head><title>A pier - The Port</title>
<link rel="canonical" href="/pier"><meta property="og:site_name" content="The Port">
<meta property="og:image" content="pier.jpg"><meta name="author" content="Ada Byron">
<meta name="description" content="On the pier"><meta property="article:published_time" content="2026-03-02T10:00:00Z">
</head><body><article><h1>A pier</h1>{PROSE}</article></body></html>"""


@pytest.mark.parametrize("mode", ["article", "page", "text", "meta"])
def test_the_meta_of_an_article_in_every_mode(mode: str) -> None:
    content, media_type, meta = read(PAGE.encode(), "text/html", mode=mode)
    expected = {
        "title": "A pier",
        "author": "Ada Byron",
        "published": "2026-03-02",
        "language": "en",
        "canonical": "https://site.test/pier",
        "description": "On the pier",
        "site_name": "The Port",
        "image": "https://site.test/dir/pier.jpg",
    }
    assert {name: meta[name] for name in expected} == expected
    if mode == "meta":
        assert media_type == "application/json"
        assert json.loads(content) == {**expected, "media_type": "text/html", "charset": "utf-8"}


def test_a_page_without_text_has_its_meta() -> None:
    page = '<html><head><title>App</title><meta property="og:site_name" content="The Port"></head><body></body></html>'
    content, _, meta = read(page.encode(), "text/html", mode="meta")
    assert json.loads(content)["title"] == "App"
    assert meta["site_name"] == "The Port"
    assert meta["warnings"] == ["The page has no text."]
