"""Mode links: of pages, Markdown and plain text."""

from __future__ import annotations

import json
import random
from urllib.parse import urljoin

import pytest

from sift.content.dom import urljoin_safe
from sift.content.links import MAX_LINKS
from tests.unit.content.reading import URL, fail, read

BASES = (
    "http://a.test/", "https://a.test/x/y;p?q#f", "", "ftp://a/", "https://u:p@h/..", "a/b", "mailto:x@y",
    "http://[::1]/z", "HTTPS://A.test:80",
)  # fmt: skip
PIECES = (
    "http://", "HTTPS://", "/", "//", ".", "..", "a", "b-c.html", "?", "#", "x=1", "&", "%20", ";", " ", "é", "[",
    ":80", "@", "w.a.test", "\t", "~",
)  # fmt: skip


def links(body: str, content_type: str = "text/html", url: str = URL) -> dict[str, str]:
    """Text by address, in order; each address once."""
    content, media_type, meta = read(body.encode(), content_type, mode="links", url=url)
    assert media_type == "application/x-ndjson"
    found = [json.loads(line) for line in content.splitlines()]
    assert all(set(link) == {"url", "text"} for link in found)
    assert len({link["url"] for link in found}) == len(found)
    assert meta["charset"] == "utf-8"
    return {link["url"]: link["text"] for link in found}


@pytest.mark.parametrize(("one", "content_type"), [("<a href=/{}>t</a>", "text/html"), ("[t](/{}) ", "text/markdown")])
def test_more_links_than_are_read(one: str, content_type: str) -> None:
    for count in (MAX_LINKS, MAX_LINKS + 1):
        body = "".join(one.format(number) for number in range(count))
        content, _, meta = read(body.encode(), content_type, mode="links")
        assert content.count("\n") == MAX_LINKS
        assert meta.get("truncated", False) == bool(meta["warnings"]) == (count > MAX_LINKS)


def test_a_page() -> None:
    body = """<html><head><title>T</title></head><body><nav><a href="/">Home</a></nav><a href="a b?x=1#y"> two
    words </a><a href='/'>again</a><a href="i"><img src=p alt="a picture"></a><a href="t" title="a title"></a>
    <map><area href="area" alt="a place"></map><a href="mailto:ada@port.test">mail</a><a>none</a>
    <a href="javascript:x()">no</a><a href="data:text/html,x">no</a><a href="#top">no</a><a href="document#top">no</a>
    <a href="https://ü.test/grün">umlaut</a><svg><a href="drawn">d</a></svg><a href="http://[bad">bad</a></body></html>"""
    assert links(body) == {
        "https://site.test/": "Home",
        "https://site.test/dir/a%20b?x=1#y": "two words",
        "https://site.test/dir/i": "a picture",
        "https://site.test/dir/t": "a title",
        "https://site.test/dir/area": "a place",
        "mailto:ada@port.test": "mail",
        "https://ü.test/grün": "umlaut",
        "https://site.test/dir/drawn": "d",
    }


def test_the_base_of_a_page_is_honoured() -> None:
    body = '<base href="https://example.com/"><a href="docs/a">a</a><a href="#part">p</a>'
    assert links(body) == {"https://example.com/docs/a": "a"}


def test_root_relative_dots_and_percent_encoding() -> None:
    body = (
        '<a href="/a/../b/%7Ec%2Fd?q=%20">1</a><a href="../../a/b/">2</a><a href="./e">3</a><a href="//o.test/x">4</a>'
    )
    assert list(links(body, url="https://site.test/one/two/three/")) == [
        "https://site.test/b/%7Ec%2Fd?q=%20",
        "https://site.test/one/a/b/",
        "https://site.test/one/two/three/e",
        "https://o.test/x",
    ]


def test_the_text_of_a_later_link_names_one_without() -> None:
    assert links('<a href="x"></a><a href="x">named</a>') == {"https://site.test/dir/x": "named"}


def test_markdown() -> None:
    body = r"""# See [the *port*](/port "title") and [ref][one], [one], ![image](pic.png) and [![alt](i.png)](linked)
<https://auto.test/x> and https://bare.test/wiki/A_(b). Not `[code](no)` nor \[escaped\](no) or [empty](#here).

```
[fenced](no) https://fenced.test/
```

[one]: <https://one.test/> "One"
[a](https://p.test/x(y)z) [space](<a b>)
"""
    assert links(body, "text/markdown") == {
        "https://site.test/port": "the port",
        "https://one.test/": "ref",
        "https://site.test/dir/linked": "alt",
        "https://auto.test/x": "",
        "https://bare.test/wiki/A_(b)": "",
        "https://p.test/x(y)z": "a",
        "https://site.test/dir/a%20b": "space",
    }


def test_plain_text() -> None:
    assert links("See https://a.test/x, (http://b.test) and\n<http://c.test/>.", "text/plain") == {
        "https://a.test/x": "",
        "http://b.test": "",
        "http://c.test/": "",
    }


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"<p>no link", "text/html", "empty"),
        (b"nothing", "text/plain", "empty"),
        (b'{"a": "https://x.test/"}', "application/json", "unsupported_media"),
        (b'{"a": 1}\n{"a": 2}', "application/x-ndjson", "unsupported_media"),
        (b"a,b\nhttps://x.test/,2", "text/csv", "unsupported_media"),
        (b"<a>https://x.test/</a>", "text/xml", "unsupported_media"),
    ],
)
def test_a_document_without_links(body: bytes, content_type: str, code: str) -> None:
    assert fail(body, content_type, mode="links")["code"] == code


@pytest.mark.parametrize(
    "piece", ["[", "[a](", "![x](y)", "[a][", "<a:", "`", "https://x.test/((", "[[", "\\[", "[a]: "]
)
def test_hostile_markdown_is_read_in_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    try:
        read(text.encode(), "text/markdown", mode="links")
    except AssertionError:
        assert fail(text.encode(), "text/markdown", mode="links")["code"] == "empty"


@pytest.mark.parametrize("seed", range(10))
def test_links_are_joined_as_urllib_joins_them(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2_000):
        base, link = chance.choice(BASES), "".join(chance.choices(PIECES, k=chance.randrange(8)))
        try:
            expected = urljoin(base, link)
        except ValueError:
            expected = ""
        assert urljoin_safe(base, link) == expected, (base, link)
