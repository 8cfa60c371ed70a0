"""A small document of each kind, for libraries to load what they need by reading it."""

from __future__ import annotations

_PARAGRAPH = (
    "The harbour authority published a long statement on the state of the northern pier this morning, after the "
    "ferries of three lines had been held at sea for a day. "
)
_ARTICLE = f"""<!doctype html><html lang=en><head><title>Harbour news</title>
<meta name=author content="A. Writer"><meta property=og:type content=article>
<script type="application/ld+json">{{"@type": "Article", "datePublished": "2024-05-06"}}</script></head>
<body><nav><a href=/>Home</a></nav><article><h1>Harbour news</h1><p class=date>Posted Monday 6 May 2024 by A. Writer</p>
<p>{_PARAGRAPH * 3}</p><ul><li>One <a href=/x>link</a></li></ul><pre><code>code</code></pre>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table><p>{_PARAGRAPH * 2}</p></article></body></html>
""".encode()
_SHORT = b"<html><body><p>A short page with a line of text.</p><p>le 12 floreal 2024</p></body></html>"
_SCRIPTED = b"<html><body><div id=app></div><noscript><p>Text for readers without scripts.</p></noscript></body></html>"
_DEEP = b"<html><body>" + b"<div>" * 300 + b"deep text" + b"</div>" * 300 + b"</body></html>"
_LATIN = "<html><body><p>Größe, façade, naïveté: text in a character set that nothing names.</p></body></html>".encode(
    "cp1252"
)

_PAGE = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 5 0 R /Resources << /Font << /F 4 0 R >> >> >>"
_DRAWING = b"BT /F 9 Tf 9 9 Td (words) Tj ET"


def _pdf() -> bytes:
    """One page with one word; the readers find the objects without a table of where they are."""
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        _PAGE,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(_DRAWING), _DRAWING),
    )
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, content) for number, content in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer\n<< /Size 6 /Root 1 0 R >>\n%%EOF\n"


_RSS = (
    b"<?xml version='1.0'?><rss version='2.0'><channel><title>Port</title><item><title>Pier</title>"
    b"<pubDate>Mon, 06 May 2024 10:00:00 GMT</pubDate><description>&lt;p&gt;News&lt;/p&gt;</description></item>"
    b"</channel></rss>"
)
_JSON_FEED = (
    b'{"version": "https://jsonfeed.org/version/1.1", "title": "Port", "items": [{"id": "1", "content_text": "News"}]}'
)
_SITEMAP = b"<urlset><url><loc>http://a.test/</loc><lastmod>2024-05-06</lastmod></url></urlset>"

_BOTH = ("auto", "text")

#: Content type, document, and the modes to read it in.
SAMPLES: tuple[tuple[str, bytes, tuple[str, ...]], ...] = (
    ("text/html; charset=utf-8", _ARTICLE, ("article", "page", "text", "links", "meta")),
    ("text/html", _SHORT, ("article",)),
    ("text/html", _SCRIPTED, ("article",)),
    ("text/html", _DEEP, ("article",)),
    ("text/html", _LATIN, ("article",)),
    ("text/html; charset=utf-8", b"<html></html>", ("article",)),
    ("application/pdf", _pdf(), ("auto", "links", "meta")),
    ("application/pdf", b"%PDF-1.4\nno document", ("auto",)),
    ("application/rtf", rb"{\rtf1 words}", ("auto", "text", "links", "meta")),
    ("application/rss+xml", _RSS, ("auto", "text", "links", "meta")),
    ("application/feed+json", _JSON_FEED, _BOTH),
    ("application/xml", _SITEMAP, ("auto", "text", "links")),
    ("application/json", b'{"a": [1, 2.5, null]}', _BOTH),
    ("application/x-ndjson", b'{"a": 1}\n[2]\n', _BOTH),
    ("application/xml", b"<?xml version='1.0'?><a>b</a>", _BOTH),
    ("text/csv", b"a,b\n1,2\n", _BOTH),
    ("text/markdown", b"# Title\n", _BOTH),
    ("text/plain", b"words\n", _BOTH),
    ("image/png", b"\x89PNG\r\n\x1a\n" + bytes(64), ("auto",)),
)
