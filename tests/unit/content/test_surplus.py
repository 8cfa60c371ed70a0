"""What of the kept text is left out again, what between it is taken in, and which pages call themselves articles."""

from __future__ import annotations

import pytest

from sift.content import selection, surplus
from sift.content.dom import Page, parse_page
from sift.content.html import read_html
from sift.content.selection import Run

URL = "https://site.test/page/"
PROSE = "The harbour authority published a long statement on the state of the northern pier this morning. "
NOTE = "Twelve berths are free for visitors until the end of the month."


def read(body: str) -> tuple[Page, list[Run]]:
    """A page, and its stretches, all of which are kept."""
    page = parse_page(f"<html><body>{body}</body></html>", URL)
    runs = selection.read_runs(page.body)
    for run in runs:
        run.kept = bool(run.words)
    return page, runs


def kept(runs: list[Run]) -> str:
    return " | ".join(" ".join(run.words) for run in runs if run.kept)


def drop_named(body: str, *, reviews: bool = False) -> str:
    page, runs = read(body)
    surplus.drop_named(page.elements, runs, reviews=reviews)
    return kept(runs)


@pytest.mark.parametrize(
    "name", ["filters", "product-filter-list", "filterPanel", "Facets", "is-sr-only x", "SMS-form"]
)
def test_controls_and_notices_go_by_their_names(name: str) -> None:
    assert drop_named(f"<p>{PROSE}</p><div class='{name}'><span><p>Colour blue</p></span></div>") == kept(
        read(f"<p>{PROSE}</p>")[1]
    )


@pytest.mark.parametrize("attribute", ["class='platform'", "class='information'", "class='reform'", "id='filters'"])
def test_names_of_other_things_and_of_sections_do_not_count(attribute: str) -> None:
    assert "colour blue" in drop_named(f"<p>{PROSE}</p><div {attribute}><p>Colour blue</p></div>")


@pytest.mark.parametrize(
    "name",
    [
        "post-7 type-post hentry category-legal tag-forms",
        "h-entry tag-filters",
        "no-sidebar",
        "has-tooltip",
        "md:not-sr-only",
    ],
)
def test_what_an_entry_is_about_and_what_an_element_lacks_or_holds_is_no_name_of_it(name: str) -> None:
    assert "colour blue" in drop_named(f"<p>{PROSE}</p><div class='{name}'><p>Colour blue</p></div>")


def test_an_entry_holds_controls_all_the_same() -> None:
    body = f"<p>{PROSE}</p><div class='post-7 hentry'><p>{PROSE}</p><div class='filters'><p>Colour blue</p></div></div>"
    assert "colour blue" not in drop_named(body)


def test_a_name_does_not_count_where_the_content_stands() -> None:
    assert "northern pier" in drop_named(f"<div class='form'><p>{PROSE}</p><p>{PROSE}</p></div><p>One more word</p>")


def test_nothing_goes_when_most_of_the_page_would() -> None:
    parts = "".join(f"<div class='modal'><p>{PROSE}</p></div>" for _ in range(6))
    assert drop_named(f"{parts}<p>{PROSE}</p>").count("northern pier") == 7


def test_a_named_cell_is_part_of_its_table() -> None:
    table = "<table><tr><th class='filter'>Ship</th><th>From</th></tr><tr><td>Anna</td><td>Oslo</td></tr></table>"
    assert "ship | from | anna | oslo" in drop_named(f"<p>{PROSE}</p>{table}")
    assert "ship" not in drop_named(f"<p>{PROSE}</p><div class='filter'>{table}</div>")


def test_data_and_listings_are_no_controls() -> None:
    rows = "<tr><th>Ship</th><th>From</th></tr><tr><td>Anna</td><td>Oslo</td></tr>"
    assert "anna | oslo" in drop_named(f"<p>{PROSE}</p><table class='compare-table'>{rows}</table>")
    assert "grep ship" in drop_named(f"<p>{PROSE}</p><pre class='filter'>grep ship</pre>")
    layout = "<table class='filter' role='presentation'><tr><td><p>Colour blue</p></td></tr></table>"
    assert "colour blue" not in drop_named(f"<p>{PROSE}</p>{layout}")


@pytest.mark.parametrize("holder", ["id='reviews'", "class='customer-review'", "itemprop='review'"])
def test_reviews_are_left_out_of_products(holder: str) -> None:
    body = f"<p>A kettle for two cups of tea.</p><div {holder}><p>{PROSE}</p></div>"
    assert drop_named(body, reviews=True) == "a kettle for two cups of tea"
    assert "northern pier" in drop_named(body)


def test_a_page_of_nothing_but_reviews_keeps_them() -> None:
    body = f"<h1>Kettle</h1><div class='reviews'><p>{PROSE * 2}</p></div>"
    assert "northern pier" in drop_named(body, reviews=True)


def test_what_stands_before_the_title_goes() -> None:
    _, runs = read(f"<p>Skip to the results</p><h1>Harbour</h1><p>{PROSE}</p>")
    surplus.drop_before_title(runs)
    assert kept(runs).startswith("harbour | the harbour authority")


def test_a_lede_before_the_title_stays() -> None:
    lede = "The pier of the northern harbour opens again this week after two winters of work on its piles."
    _, runs = read(f"<p>Skip to the results</p><p>{lede}</p><h1>Harbour</h1><p>{PROSE * 6}</p>")
    surplus.drop_before_title(runs)
    assert kept(runs).startswith("the pier of the northern harbour")


@pytest.mark.parametrize(
    "body",
    [
        f"<p>A word first</p><h1>Harbour</h1><p>{PROSE}</p><h1>Pier</h1><p>{PROSE}</p>",
        f"<p>A word first</p><h2>Harbour</h2><p>{PROSE}</p>",
        f"<p>A word first</p><p>{PROSE}</p><h1>Harbour</h1><p>{PROSE}</p>",
        f"<p>A word first</p><h2>Pier</h2><h1>Harbour</h1><p>{PROSE}</p><p>{PROSE}</p>",
    ],
    ids=["two titles", "none", "in the middle", "one heading of many"],
)
def test_without_one_title_above_the_text_nothing_goes(body: str) -> None:
    _, runs = read(body)
    surplus.drop_before_title(runs)
    assert kept(runs).startswith("a word first")


def test_a_copy_in_another_place_goes() -> None:
    _, runs = read(f"<div class='wide'><p>{NOTE}</p></div><p>{PROSE}</p><div class='narrow'><p>{NOTE}</p></div>")
    surplus.drop_repeated(runs, product=True)
    assert kept(runs).count("twelve berths") == 1
    assert kept(runs).startswith("twelve berths")


def test_of_two_copies_with_headings_one_goes() -> None:
    copy = f"<h2>{NOTE}</h2><p>{PROSE}</p>"
    _, runs = read(f"<p>{NOTE}</p><div class='wide'>{copy}</div><div class='narrow'>{copy}</div>")
    surplus.drop_repeated(runs, product=True)
    assert kept(runs).count("twelve berths") == 2
    assert kept(runs).count("northern pier") == 1


@pytest.mark.parametrize(
    "body",
    [
        f"<div class='row'><p>{NOTE}</p></div><p>{PROSE}</p><div class='row'><p>{NOTE}</p></div>",
        "<div class='wide'><p>Twelve berths free</p></div><div class='narrow'><p>Twelve berths free</p></div>",
        f"<div class='wide'><pre>{NOTE}</pre></div><div class='narrow'><pre>{NOTE}</pre></div>",
        f"<div class='v1'><p>{NOTE}</p></div><p>{PROSE}</p><div class='v2'><p>{NOTE}</p></div>",
        f"<div class='row odd-row'><p>{NOTE}</p></div><div class='row even-row'><p>{NOTE}</p></div>",
        f"<div class='post-1 tag-a'><p>{NOTE}</p></div><div class='post-2 tag-b'><p>{NOTE}</p></div>",
        f"<ul><li><a href='#a'>{NOTE}</a></li></ul><h2 id='a'>{NOTE}</h2><p>{PROSE}</p>",
        f"<ol><li>{NOTE}</li></ol><h2>{NOTE}</h2><p>{PROSE}</p>",
        f"<ul><li><a href='#a'>{NOTE}</a></li></ul><dl><dt id='a'>{NOTE}</dt><dd>{PROSE}</dd></dl>",
    ],
    ids=["made alike", "short", "listings", "numbered", "in turns", "entries", "contents", "plain contents", "terms"],
)
def test_what_is_said_again_on_purpose_stays(body: str) -> None:
    _, runs = read(body)
    surplus.drop_repeated(runs, product=True)
    assert kept(runs).count("twelve berths") == 2


@pytest.mark.parametrize("product", [True, False])
def test_a_sentence_is_said_again_on_purpose_but_for_products(product: bool) -> None:
    line = "Returns the number of ships in the harbour."
    body = "<div class='{}'><p>" + line + "</p></div><div class='{}'><p>" + PROSE + "</p></div>"
    _, runs = read(body.format("summary", "wide") + body.format("detail", "narrow"))
    surplus.drop_repeated(runs, product=product)
    assert kept(runs).count("number of ships") == (1 if product else 2)
    assert kept(runs).count("northern pier") == 1


def test_a_description_for_two_sizes_of_screens_is_written_once() -> None:
    page = (
        '<html><head><meta property="og:type" content="product"></head><body><main><h1>Kettle</h1>'
        f"<div class='large'><p>{NOTE}</p><p>{PROSE}</p></div><div class='small'><p>{NOTE}</p><p>{PROSE}</p></div>"
        "</main></body></html>"
    )
    assert read_html(page, URL, "article")[0].count("Twelve berths") == 1


POSTS = "".join(f"<div class='{name}'><p>{name}</p><div>{PROSE}</div></div>" for name in ("first", "second", "third"))


@pytest.mark.parametrize("gapless", [True, False])
def test_between_what_was_kept_nothing_is_left_out_of_a_page_of_no_kind(gapless: bool) -> None:
    page, runs = read(f"<p>Menu of the forum</p>{POSTS}<p>Imprint of the forum</p>")
    for run in runs:
        run.kept = len(run.words) > 8 and "second" not in run.block.parent.attrs.get("class", "")  # type: ignore[union-attr]
    region, _ = selection.find_region(runs)
    selection.complete(page.elements, runs, region, gapless=gapless)
    assert kept(runs).count("northern pier") == (3 if gapless else 2)
    assert ("second" in kept(runs)) is gapless
    assert "forum" not in kept(runs)


def test_what_leads_elsewhere_goes_from_between_too() -> None:
    related = "<div class='related'><p>Other piers of the north</p></div>"
    page, runs = read(f"<p>{PROSE}</p>{related}<p>{PROSE}</p>")
    for run in runs:
        run.kept = len(run.words) > 8
    selection.complete(page.elements, runs, selection.find_region(runs)[0], gapless=True)
    assert "other piers" not in kept(runs)


ARTICLE = '<meta property="og:type" content="article">'


def schema(kind: str) -> str:
    return f'<script type="application/ld+json">{{"@graph": [{{"@type": {kind}, "name": "A"}}]}}</script>'


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (ARTICLE, "article"),
        (ARTICLE + schema('"Organization"'), "article"),
        (ARTICLE + schema('"WebPage"'), ""),
        (ARTICLE + schema('["CollectionPage"]'), ""),
        (ARTICLE + schema('"WebPage"') + schema('"NewsArticle"'), "article"),
        (ARTICLE + schema('"WebPage"') + schema('["Thing", "BlogPosting"]'), "article"),
        (ARTICLE + schema('"WebPage"') + '<meta property="article:published_time" content="2024-03-02">', "article"),
        (ARTICLE + schema('"WebPage"') + "<body itemscope itemtype=https://schema.org/BlogPosting>", "article"),
        (ARTICLE + schema('"WebPage"') + schema('"Product"'), "product"),
        (schema('"NewsArticle"'), ""),
    ],
)
def test_what_a_page_calls_itself(head: str, kind: str) -> None:
    assert parse_page(f"<html><head>{head}</head><p>{PROSE}</p></html>", URL).kind == kind
