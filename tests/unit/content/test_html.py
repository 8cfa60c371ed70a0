"""HTML to content: the article, the whole page, the text, and pages that have broken other readers.

A comment above a test names the public report of what broke there.
"""

from __future__ import annotations

import re

import pytest

from sift.content.html import read_html
from sift.errors import TargetFailed

URL = "https://site.test/docs/page/"
PROSE = "The harbour authority published a long statement on the state of the northern pier this morning. "


def article(html: str, url: str = URL) -> str:
    return read_html(html, url, "article")[0]


def page_of(body: str, head: str = "") -> str:
    return (
        f"<!doctype html><html><head><title>T</title>{head}</head><body><nav><a href='/home'>Home</a></nav>"
        f"<article><h1>Harbour news</h1><p>{PROSE * 3}</p>{body}<p>{PROSE * 2}</p></article>"
        "<footer>All rights reserved by nobody in particular</footer></body></html>"
    )


def test_an_article_without_its_surroundings() -> None:
    content, meta, warnings = read_html(page_of("<h2>Part</h2><p>" + PROSE + "</p>"), URL, "article")
    assert "northern pier" in content
    assert "\n\n## Part\n\n" in content
    assert "rights reserved" not in content
    assert meta["title"] == "Harbour news"
    assert warnings == []


# adbar/trafilatura#896
def test_a_short_notice_keeps_its_heading_apart() -> None:
    text = ("Notice of a short closure of the hall. " * 7)[:240].strip()
    content = article(f"<html><body><article><h1>Closed on Monday</h1><p>{text}</p></article></body></html>")
    assert content.startswith("# Closed on Monday\n\nNotice of a short")


# adbar/trafilatura#599
def test_an_info_box_is_one_valid_table() -> None:
    table = """<table><tr><th colspan="2">Harbour of Norden</th></tr>
      <tr><td>Founded</td><td>1702<br>rebuilt 1911</td></tr>
      <tr><td>Berths</td><td><p>twelve</p><p>two for ferries</p></td></tr>
      <tr><td>Lines</td><td><ul><li>North</li><li>South</li></ul></td></tr></table>"""
    content = article(page_of(table))
    rows = [line for line in content.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert sum(bool(re.fullmatch(r"[|\- ]+", row)) for row in rows) == 1
    for cell in ("Harbour of Norden", "1702<br>rebuilt 1911", "twelve<br>two for ferries", "North", "South"):
        assert cell in content


# adbar/trafilatura#562
def test_a_three_column_table() -> None:
    table = (
        "<table><tr><th>Ship</th><th>From</th><th>Time</th></tr>"
        "<tr><td>Anna</td><td>Oslo</td><td>10:15</td></tr><tr><td>Berta</td><td>a|b</td><td>11:30</td></tr></table>"
    )
    assert "| Ship | From | Time |\n| --- | --- | --- |\n| Anna | Oslo | 10:15 |\n| Berta | a\\|b |" in article(
        page_of(table)
    )


def test_rowspan_keeps_every_row_as_wide() -> None:
    table = (
        "<table><tr><th>Day</th><th>Ship</th></tr><tr><td rowspan=2>Monday</td><td>Anna</td></tr>"
        "<tr><td>Berta</td></tr></table>"
    )
    assert "| Monday | Anna |\n|  | Berta |" in article(page_of(table))


# adbar/trafilatura#553
def test_code_keeps_its_tabs_and_inline_code_its_line() -> None:
    code = '<pre><code class="language-go">func main() {\n\tif ok {\n\t\treturn\n\t}\n}</code></pre>'
    content = article(page_of(f"<p>Call <code>main()</code> in a sentence of the manual now.</p>{code}"))
    assert "Call `main()` in a sentence" in content
    assert "```go\nfunc main() {\n\tif ok {\n\t\treturn\n\t}\n}\n```" in content


# adbar/trafilatura#769
def test_list_items_keep_their_markers() -> None:
    items = (
        "<ul><li><p>First point of the harbour list</p></li><li><a href='/b'>Second point, a link only</a></li></ul>"
    )
    content = article(page_of(items))
    assert "- First point of the harbour list\n- [Second point, a link only](https://site.test/b)" in content


# adbar/trafilatura#430
def test_sections_nested_twenty_deep_are_all_there() -> None:
    sections = "".join(f"<section><h2>Section {n}</h2><p>Number {n}. {PROSE}</p></section>" for n in range(5))
    content = article("<html><body>" + "<div>" * 20 + sections + "</div>" * 20 + "</body></html>")
    assert all(f"## Section {n}" in content and f"Number {n}." in content for n in range(5))


# adbar/trafilatura#627
def test_a_fragment_with_entities() -> None:
    content = article("Fish &amp; chips &lt;today&gt; <b>only</b>&nbsp;here")
    assert "Fish & chips" in content
    assert "<b>" not in content


# unclecode/crawl4ai#570, #1127 and #1680
def test_links_are_resolved() -> None:
    links = (
        '<p>See <a href="rel">one relative page</a>, <a href="/root">a root one</a>, <a href="../../a/b/">dots</a>, '
        '<a href="/p%20q/%C3%BC?x=%26">encoded</a> and <a href="javascript:x()">script</a> in this sentence.</p>'
    )
    content = article(page_of(links))
    assert "[one relative page](https://site.test/docs/page/rel)" in content
    assert "[a root one](https://site.test/root)" in content
    assert "[dots](https://site.test/a/b/)" in content
    assert "[encoded](https://site.test/p%20q/%C3%BC?x=%26)" in content
    assert "javascript" not in content
    based = article(page_of(links, '<base href="https://example.com/">'))
    assert "[one relative page](https://example.com/rel)" in based


# firecrawl/firecrawl#2306
def test_a_listing_laid_out_as_a_table_with_line_numbers() -> None:
    table = (
        '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2\n3</pre></td>'
        '<td class="code"><pre>def f():\n    return 1\n# end</pre></td></tr></table>'
    )
    assert "```\ndef f():\n    return 1\n# end\n```" in article(page_of(table))
    rows = "".join(
        f'<tr><td class="num" data-line-number="{n}"></td><td class="blob-code">line_{n}()</td></tr>' for n in (1, 2, 3)
    )
    assert "```\nline_1()\nline_2()\nline_3()\n```" in article(page_of(f"<table>{rows}</table>"))


WHOLE = "No main content was found; this is the whole page."


# firecrawl/firecrawl#540
def test_no_main_content_is_the_whole_page_and_a_warning() -> None:
    comments = "".join(f"<div class=comment>Berth {n} is free, writes the harbour master</div>" for n in range(40))
    page = f"<html><body><nav>Menu</nav><div id=comments class=comments-area>{comments}</div></body></html>"
    content, _, warnings = read_html(page, URL, "article")
    assert all(f"Berth {n} is free" in content for n in range(40))
    assert "Menu" not in content
    assert warnings == [WHOLE]


# firecrawl/firecrawl#289
@pytest.mark.parametrize("tag", ["main", "div"])
def test_a_category_page_gives_its_entries(tag: str) -> None:
    cards = "".join(
        f"<li><a href='/e{n}'><img src='{n}.jpg'><h3>Entry number {n}</h3></a><span>{n}.50</span></li>"
        for n in range(40)
    )
    page = f"<html><body><header>Shop</header><{tag}><ul>{cards}</ul></{tag}><footer>Imprint</footer></body></html>"
    content, _, warnings = read_html(page, URL, "article")
    assert all(f"[Entry number {n}](https://site.test/e{n})" in content and f"{n}.50" in content for n in range(40))
    assert "Imprint" not in content
    assert warnings == []


def test_a_page_of_asides_only_is_not_empty() -> None:
    content, _, warnings = read_html("<html><body><aside><p>One line.</p></aside></body></html>", URL, "article")
    assert "One line." in content
    assert warnings == [WHOLE]


SECTIONS = "".join(f"<section><h2>Part {n}</h2><div>Offer {n}: a berth by the week</div></section>" for n in range(12))


def test_a_page_of_sections_is_all_of_its_main() -> None:
    page = f"<html><body><div>Cookies</div><main><p>{PROSE * 3}</p>{SECTIONS}</main><div>Elsewhere</div></body></html>"
    content, _, warnings = read_html(page, URL, "article")
    assert all(f"## Part {n}\n\nOffer {n}: a berth by the week" in content for n in range(12))
    assert "Cookies" not in content
    assert "Elsewhere" not in content
    assert warnings == []


def test_an_empty_frame_called_main_is_not_the_page() -> None:
    frame = f"<main><p>{'Skip to what this is about, please wait while it loads here.'}</p></main>"
    content = article(f"<html><body>{frame}<div><h1>Harbour</h1>{f'<p>{PROSE}</p>' * 9}</div></body></html>")
    assert content.count("northern pier") == 9


def test_a_frame_for_readers_without_scripts_that_nobody_closes_holds_nothing() -> None:
    frame = "<noscript><iframe src=https://tags.test/ns.html height=0 style='display: none' /></noscript>"
    page = page_of("<p>Another word on it.</p>").replace("<body>", f"<body>{frame}")
    for mode in ("article", "page", "text"):
        assert "Another word on it." in read_html(page, URL, mode)[0]


@pytest.mark.parametrize(
    "head",
    [
        '<meta property="og:type" content="article">',
        '<meta property="og:type" content="product">',
        '<script type="application/ld+json">{"@type": "Product", "name": "A berth"}</script>',
    ],
)
def test_a_page_that_calls_itself_an_article_or_a_product_is_not(head: str) -> None:
    cards = "".join(f"<div><a href='/{n}'><h4>Other page number {n}</h4></a></div>" for n in range(60))
    page = f"<html><head>{head}</head><body><main><article><h1>A</h1><p>{PROSE * 6}</p></article>{cards}</main></body>"
    assert "Other page" not in article(page)
    assert "Other page number 7" in article(page.replace(head, ""))


def test_links_to_related_pages_go() -> None:
    related = f"<div class='related-posts'><p><a href='/x'>{PROSE}</a></p></div>"
    assert "](https://site.test/x)" not in article(page_of(related))


def test_headings_lists_and_code_between_what_was_kept_are_kept() -> None:
    between = "<h2>Tides</h2><ul><li>High at ten</li><li>Low at four</li></ul><pre>tide --now</pre><h3>Notes</h3>"
    content = article(page_of(between))
    assert "## Tides\n\n- High at ten\n- Low at four\n\n```\ntide --now\n```\n\n### Notes" in content


def test_a_link_around_blocks_is_one_of_its_heading() -> None:
    card = f"<a href='/card'><div><h3>The card</h3><p>{PROSE}</p></div></a>"
    content = article(page_of(card))
    assert f"### [The card](https://site.test/card)\n\n{PROSE.strip()}" in content
    plain = article(page_of(f"<a href='/card'><div>{PROSE}</div></a>"))
    assert f"[{PROSE.strip()}](https://site.test/card)" in plain


def test_a_heading_in_a_cell_is_text() -> None:
    table = "<table><tr><th><h4>Ship</h4></th><th>From</th></tr><tr><td>Anna</td><td>Oslo</td></tr></table>"
    assert "| Ship | From |\n| --- | --- |" in article(page_of(table))


def test_a_layout_table_stays_one_when_its_menu_goes() -> None:
    page = (
        f"<html><body><table><tr><td><a href=/1>One</a> <a href=/2>Two</a></td><td><h1>News</h1><p>{PROSE * 25}</p>"
        f"<p>{PROSE * 3}</p></td></tr></table></body></html>"
    )
    assert not any(line.startswith("|") for line in article(page).splitlines())


def test_a_page_without_text_is_empty() -> None:
    with pytest.raises(TargetFailed) as caught:
        read_html("<html><body><div id=root></div><script>boot()</script></body></html>", URL, "article")
    assert caught.value.code == "empty"


def test_the_whole_page() -> None:
    content, _, _ = read_html(page_of(""), URL, "page")
    assert "rights reserved" in content
    assert "(https://site.test/home)" in content


def test_the_whole_page_is_without_scripts_and_styles() -> None:
    content, _, _ = read_html(page_of("<script>var hidden</script><style>b{color:red}</style>"), URL, "page")
    assert "hidden" not in content
    assert "color" not in content


@pytest.mark.parametrize("mode", ["article", "text", "page"])
def test_a_page_for_scripts_is_read_from_what_it_has_without_them(mode: str) -> None:
    html = f"<html><body><div id=app></div><noscript><article><p>{PROSE * 5}</p></article></noscript></body></html>"
    assert "northern pier" in read_html(html, URL, mode)[0]


def test_content_that_stands_only_in_structured_data_is_not_lost() -> None:
    data = '{"@context": "https://schema.org", "@type": "NewsArticle", "articleBody": "' + PROSE * 5 + '"}'
    html = f'<html><head><script type="application/ld+json">{data}</script></head><body><p>Loading</p></body></html>'
    assert "northern pier" in read_html(html, URL, "article")[0]


def test_the_text_of_a_page() -> None:
    content, _, _ = read_html(page_of("<script>var x</script><style>b{}</style>"), URL, "text")
    lines = content.splitlines()
    assert "Harbour news" in lines
    assert "var x" not in content
    assert "<" not in content


def test_what_looks_like_markup_in_text_is_escaped() -> None:
    content = article(page_of("<p># not a heading, *stars* and [brackets] of the harbour</p>"))
    assert "\\# not a heading, \\*stars\\* and \\[brackets\\]" in content


def test_metadata() -> None:
    head = (
        '<link rel="canonical" href="/c"><meta name="author" content="Ada Byron">'
        '<meta name="description" content="On piers."><meta property="article:published_time" content="2024-03-02">'
    )
    _, meta, _ = read_html(page_of("", head).replace("<html>", '<html lang="en-GB">'), URL, "article")
    assert meta["canonical"] == "https://site.test/c"
    assert meta["author"] == "Ada Byron"
    assert meta["description"] == "On piers."
    assert meta["published"] == "2024-03-02"
    assert meta["language"] == "en-GB"


@pytest.mark.parametrize("mode", ["article", "page", "text"])
@pytest.mark.parametrize(
    "body",
    [
        "<div>" * 20_000 + PROSE * 5,
        "<p " + " ".join(f"a{n}=1" for n in range(20_000)) + f">{PROSE * 5}",
        "<table><tr><td>" * 2_000 + PROSE * 5,
        "<ul><li>" * 3_000 + PROSE * 5,
        "<blockquote>" * 3_000 + PROSE * 5,
        "<b><i>" * 3_000 + PROSE * 5,
        "<span>" * 3_000 + f"<p>{PROSE * 5}</p>",
    ],
    ids=["divs", "attributes", "tables", "lists", "quotes", "emphasis", "spans"],
)
def test_pages_nested_beyond_measure_are_flattened(body: str, mode: str) -> None:
    import sys

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)  # as in a child
    try:
        content, _, warnings = read_html(f"<html><body>{body}</body></html>", URL, mode)
    finally:
        sys.setrecursionlimit(limit)
    assert "northern pier" in content
    assert any("flattened" in warning for warning in warnings)


def test_spans_that_claim_the_world() -> None:
    table = "<table><tr><td colspan=99999999>wide cell of the harbour</td><td rowspan=65000>b</td></tr></table>"
    assert len(article(page_of(table * 5))) < 20_000


@pytest.mark.parametrize(
    ("markup", "author"),
    [
        ('<a rel="author" href="/ada">Ada Byron</a>', "Ada Byron"),
        ('<span itemprop="author">by Ada Byron</span>', "Ada Byron"),
        ('<div class="post-byline">Written by Ada Byron | 3 min read</div>', "Ada Byron"),
        ('<p class="author-name">Ada Byron, updated 3 May</p>', "Ada Byron"),
        ('<div class="author-box">About the author</div>', None),
        (f'<div class="authors">{"<p>Ada Byron</p>" * 60}</div>', None),
    ],
)
def test_the_author_that_a_page_shows(markup: str, author: str | None) -> None:
    assert read_html(page_of(markup), URL, "article")[1]["author"] == author


@pytest.mark.parametrize(
    ("head", "headings", "title"),
    [
        ("<title>T | Site</title>", "<h1>One heading</h1>", "One heading"),
        ("<title>Pier closed | The Port</title>", "<h1>A</h1><h1>B</h1>", "Pier closed"),
        ('<title>T</title><meta property="og:title" content="Pier closed - The Port">', "", "Pier closed"),
        ("<title>Low-water marks</title>", "", "Low-water marks"),
    ],
)
def test_the_title_of_a_page(head: str, headings: str, title: str) -> None:
    page = f"<html><head>{head}</head><body>{headings}<p>{PROSE * 4}</p></body></html>"
    assert read_html(page, URL, "text")[1]["title"] == title


@pytest.mark.parametrize(
    ("markup", "day"),
    [
        ('<time datetime="2024-03-02T10:00:00+01:00">2 March</time>', "2024-03-02"),
        ('<p class="date">March 2, 2024</p>', "2024-03-02"),
        ("<p>No day anywhere.</p>", None),
    ],
)
def test_the_day_that_a_page_shows(markup: str, day: str | None) -> None:
    assert read_html(page_of(markup), URL, "article")[1]["published"] == day


def test_the_collector_is_left_as_it_was() -> None:
    import gc

    assert gc.isenabled()
    with pytest.raises(TargetFailed):
        read_html("<html></html>", URL, "article")
    assert gc.isenabled()
