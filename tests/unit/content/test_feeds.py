"""Feeds and sitemaps."""

from __future__ import annotations

import gzip
import json

import pytest

from sift.content import feeds, sitemaps
from tests.unit.content.reading import fail, read

RSS = """<?xml version="1.0" encoding="utf-8"?>
<?xml-stylesheet type="text/xsl" href="style.xsl"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"
     xmlns:atom="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/"><channel>
<title>Pier &amp; Port</title><link>https://port.test/</link>
<description>All of &lt;b&gt;the&lt;/b&gt; port</description>
<language>en-gb</language><atom:link rel="self" href="https://port.test/feed"/>
<item><title>AT&amp;amp;T &lt;em&gt;wins&lt;/em&gt;</title><link>https://port.test/1</link>
<pubDate>Mon, 02 Mar 2026 10:00:00 +0100</pubDate><dc:creator>Ada</dc:creator><description>Short.</description>
<content:encoded><![CDATA[<p>Long <a href="rel/a">text</a> &amp; more.</p><script>evil()</script>
<ul><li>one</li></ul>]]></content:encoded>
</item>
<item><guid isPermaLink="true">https://port.test/2</guid><title>No link &nbsp;but a guid</title>
<enclosure url="https://port.test/2.mp3" type="audio/mpeg"/><pubDate>gestern</pubDate></item>
</channel></rss>"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://base.test/x/"><title>A feed</title>
<link href="/"/><link rel="self" href="self"/>
<entry><title type="html">A &lt;i&gt;title&lt;/i&gt;</title><link rel="alternate" href="e1"/>
<author><name>Bea</name></author>
<updated>2026-03-02T10:00:00+01:00</updated>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>x <b>y</b> <a href="z">link</a></p></div></content>
</entry></feed>"""

RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="https://old.test/"><title>Old</title><link>https://old.test/</link></channel>
<item rdf:about="https://old.test/1"><title>One</title><link>https://old.test/1</link><description>First.</description></item>
</rdf:RDF>"""

JSON = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "Log",
    "home_page_url": "https://log.test/",
    "language": "en",
    "authors": [{"name": "Ada"}, {"name": "Bea"}],
    "items": [
        {
            "id": 1,
            "url": "/1",
            "title": "One",
            "content_html": "<p>It <b>is</b></p>",
            "date_published": "2026-03-02T10:00:00Z",
        },
        {"id": "2", "content_text": "Only *text*", "title": None, "url": 7},
        "no item",
    ],
}


def test_rss() -> None:
    content, media_type, meta = read(RSS.encode(), "text/html")
    assert media_type == "text/markdown"
    assert content == (
        "# Pier & Port\n\n## AT&T wins\n\n<https://port.test/1> · 2026-03-02T09:00:00Z · Ada\n\n"
        "Long [text](https://site.test/dir/rel/a) & more.\n\n- one\n\n"
        "## No link but a guid\n\n<https://port.test/2> · gestern\n"
    )
    assert (meta["title"], meta["canonical"], meta["language"]) == ("Pier & Port", "https://port.test/", "en-gb")
    assert meta["description"] == "All of the port"


def test_atom_with_a_base_of_its_own() -> None:
    content, _, meta = read(ATOM.encode(), "application/atom+xml")
    assert content == (
        "# A feed\n\n## A title\n\n<https://base.test/x/e1> · 2026-03-02T09:00:00Z · Bea\n\n"
        "x **y** [link](https://base.test/x/z)\n"
    )
    assert (meta["media_type"], meta["canonical"]) == ("application/atom+xml", "https://base.test/")


def test_rss_1() -> None:
    assert "## One\n\n<https://old.test/1>\n\nFirst.\n" in read(RDF.encode(), "application/rdf+xml")[0]


@pytest.mark.parametrize("content_type", ["application/feed+json", "application/json"])
def test_json_feed(content_type: str) -> None:
    content, media_type, meta = read(json.dumps(JSON).encode(), content_type)
    assert media_type == "text/markdown"
    assert content == (
        "# Log\n\n## One\n\n<https://site.test/1> · 2026-03-02T10:00:00Z\n\nIt **is**\n\n## Untitled\n\nOnly *text*\n"
    )
    assert (meta["author"], meta["canonical"]) == ("Ada, Bea", "https://log.test/")


@pytest.mark.parametrize("body", [RSS.encode(), ATOM.encode(), RDF.encode(), json.dumps(JSON).encode()])
def test_links_and_text_of_each(body: bytes) -> None:
    content, media_type, _ = read(body, "", mode="links")
    assert media_type == "application/x-ndjson"
    assert all(json.loads(line)["url"].startswith("https://") for line in content.splitlines())
    text, media_type, meta = read(body, "", mode="text")
    assert media_type == "text/plain"
    assert text.startswith(meta["title"] + "\n\n")
    assert "**" not in text


def test_a_feed_that_breaks_off_is_read_as_far_as_it_goes() -> None:
    body = RSS.replace("&nbsp;", "")
    assert "## AT&T wins" in read(body[: body.index("</channel>")].encode())[0]


def test_a_feed_in_another_charset() -> None:
    body = (
        '<?xml version="1.0" encoding="windows-1251"?><rss version="2.0"><channel><title>Порт</title>'
        "<item><title>Причал закрыт</title></item></channel></rss>"
    )
    content, _, meta = read(body.encode("cp1251"), "application/rss+xml")
    assert content == "# Порт\n\n## Причал закрыт\n"
    assert meta["charset"] == "windows-1251"


def test_entities_of_a_feed_are_not_loaded_or_multiplied() -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    dtd = f'<!DOCTYPE rss [<!ENTITY e0 "lol">{levels}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    body = f"{dtd}<rss version='2.0'><channel><title>T</title><item><title>&e11; &f;</title></item></channel></rss>"
    content = read(body.encode(), "application/rss+xml")[0]
    assert "root:" not in content
    assert len(content) < 1000


def test_a_feed_without_entries_is_empty_and_has_its_meta() -> None:
    body = b"<rss version='2.0'><channel><title>T</title></channel></rss>"
    assert fail(body)["code"] == "empty"
    assert json.loads(read(body, mode="meta")[0])["title"] == "T"


URLSET = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<url><loc> https://port.test/a?x=1&amp;y=2 </loc><lastmod>2026-03-02</lastmod><image:image><image:loc>https://i.test/</image:loc></image:image></url>
<url><loc>https://port.test/b</loc></url><url><priority>1</priority></url></urlset>"""
INDEX = """<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>https://port.test/s1.xml.gz</loc>
<lastmod>2026-03-02T10:00:00Z</lastmod></sitemap></sitemapindex>"""


def test_a_sitemap() -> None:
    assert read(URLSET.encode(), "application/xml")[:2] == (
        "- <https://port.test/a?x=1&y=2> (2026-03-02)\n- <https://port.test/b>\n",
        "text/markdown",
    )
    assert read(URLSET.encode(), mode="text")[0] == "https://port.test/a?x=1&y=2\t2026-03-02\nhttps://port.test/b\n"
    assert [json.loads(line)["url"] for line in read(URLSET.encode(), mode="links")[0].splitlines()] == [
        "https://port.test/a?x=1&y=2",
        "https://port.test/b",
    ]


def test_a_sitemap_index() -> None:
    assert read(INDEX.encode(), "text/xml")[0] == "- <https://port.test/s1.xml.gz> (2026-03-02T10:00:00Z)\n"


def test_a_packed_sitemap() -> None:
    content, _, meta = read(gzip.compress(URLSET.encode()), "application/x-gzip", url="https://port.test/s1.xml.gz")
    assert content.startswith("- <https://port.test/a")
    assert meta["media_type"] == "application/xml"


def test_an_empty_sitemap() -> None:
    assert fail(b"<urlset></urlset>")["code"] == "empty"


def test_a_sitemap_has_addresses_of_pages_only() -> None:
    places = ("/rel a", "javascript:alert(1)", "data:text/html,x", "https://port.test/x\ty&lt;z&gt;", "#top")
    body = "<urlset>" + "".join(f"<url><loc>{place}</loc></url>" for place in places) + "</urlset>"
    expected = ["https://port.test/rel%20a", "https://port.test/xy%3Cz%3E"]
    for mode, form in (("auto", "- <{}>"), ("text", "{}")):
        content = read(body.encode(), "application/xml", url="https://port.test/s.xml", mode=mode)[0]
        assert content.splitlines() == [form.format(place) for place in expected]
    assert fail(b"<urlset><url><loc>javascript:x</loc></url></urlset>")["code"] == "empty"


@pytest.mark.parametrize("authors", ["Ada", {"name": "Ada"}, 7, True, [7, {"name": 7}]])
def test_authors_that_are_no_list_count_as_missing(authors: object) -> None:
    feed = {**JSON, "authors": authors, "home_page_url": "/home", "icon": "icon.png"}
    _, _, meta = read(json.dumps(feed).encode(), "application/feed+json", url="https://log.test/feeds/log.json")
    assert "author" not in meta
    assert (meta["canonical"], meta["image"]) == ("https://log.test/home", "https://log.test/feeds/icon.png")


def test_a_feed_without_an_image_has_none() -> None:
    assert "image" not in read(RSS.encode())[2]
    assert "image" not in read(json.dumps(JSON).encode(), "application/feed+json")[2]


LARGE = {
    "rss": (RSS[: RSS.index("<item>")], "<item><title>e{}</title></item>", "</channel></rss>"),
    "atom": (
        "<a:feed xmlns:a='http://www.w3.org/2005/Atom'>",
        "<a:entry><a:title>e{}</a:title></a:entry>",
        "</a:feed>",
    ),
    "rdf": (RDF[: RDF.index("<item")], "<item><title>e{}</title></item>", "</rdf:RDF>"),
}


@pytest.mark.parametrize("kind", LARGE)
def test_only_the_first_entries_of_a_large_feed_are_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MAX_ENTRIES", 3)
    start, entry, end = LARGE[kind]
    for count in (3, 4, 9):
        body = start + "".join(entry.format(number) for number in range(count)) + end
        content, _, meta = read(body.encode(), "application/xml", mode="text")
        assert [f"e{number}" in content for number in range(4)] == [True, True, True, False]
        assert meta.get("truncated", False) == bool(meta["warnings"]) == (count > 3)


def test_a_large_feed_is_cut_at_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = RSS[: RSS.rindex("<item>")].count("<") + RSS[: RSS.rindex("<item>")].count("&lt;")
    monkeypatch.setattr(feeds, "MAX_FEED_TAGS", tags + 1)
    content, _, meta = read(RSS.encode(), "application/rss+xml", mode="text")
    assert "Long text" in content
    assert "but a guid" not in content
    assert meta["truncated"] is True


def test_a_feed_of_endless_tags_or_entries_without_an_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MAX_FEED_TAGS", 40)
    monkeypatch.setattr(feeds, "MAX_ENTRIES", 3)
    start = "<rss version='2.0'><channel><title>F</title>"
    content, _, meta = read(f"{start}<item><title>one</title>{'<x>a</x>' * 99}".encode(), "application/rss+xml")
    assert "one" in content
    assert meta["truncated"] is True
    content, _, meta = read((start + "<item><title>one</title>" * 9).encode(), "application/rss+xml", mode="text")
    assert content.count("one") == 3
    assert meta["truncated"] is True


def test_only_the_first_entries_of_a_large_json_feed_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MAX_ENTRIES", 3)
    items = [{"url": f"/{number}", "title": f"e{number}"} for number in range(4)]
    content, _, meta = read(json.dumps({**JSON, "items": items}).encode(), "application/feed+json", mode="links")
    assert content.count("\n") == 3
    assert meta["truncated"] is True
    monkeypatch.setattr(feeds, "MAX_FEED_TAGS", 1)
    items = [{"title": f"e{number}", "content_html": "<p>x"} for number in range(2)]
    content, _, meta = read(json.dumps({**JSON, "items": items}).encode(), "application/feed+json", mode="text")
    assert ("e0" in content, "e1" in content, meta["truncated"]) == (True, False, True)


def test_more_addresses_than_a_sitemap_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemaps, "MAX_LINKS", 2)
    body = "<urlset>" + "".join(f"<url><loc>https://a.test/{number}</loc></url>" for number in range(3)) + "</urlset>"
    content, _, meta = read(body.encode(), "application/xml")
    assert content.count("\n") == 2
    assert meta["truncated"] is True
