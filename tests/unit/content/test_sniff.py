"""What a document is, by its bytes first."""

from __future__ import annotations

import pytest

from sift.content.archives import DOCX
from sift.content.sniff import parse_media_type, sniff


@pytest.mark.parametrize(
    ("body", "content_type", "kind", "media_type"),
    [
        (b"%PDF-1.7 ...", "text/html", "pdf", "application/pdf"),
        (b"\n\n%PDF-1.4", "", "pdf", "application/pdf"),
        (b"<!DOCTYPE html><p>viewer of %PDF-1.7", "application/pdf", "html", "text/html"),
        (b"<html><body>x", "application/pdf", "html", "text/html"),
        (b"<p>a fragment", "", "html", "text/html"),
        (b"a fragment &amp; more", "text/html; charset=utf-8", "html", "text/html"),
        (b'<?xml version="1.0"?><!DOCTYPE html><html>', "", "html", "text/html"),
        (b'<?xml version="1.0"?><rss>', "", "feed", "application/xml"),
        (b"<rss>", "application/rss+xml", "feed", "application/rss+xml"),
        (
            b'<?xml version="1.0"?><!-- a > b --><?style x?>\n<rss version="2.0">',
            "text/html",
            "feed",
            "application/xml",
        ),
        (b'<!DOCTYPE rss [<!ENTITY a "b">]>\n<rss>', "text/xml", "feed", "text/xml"),
        (b'<feed xmlns="http://www.w3.org/2005/Atom">', "text/plain", "feed", "application/xml"),
        (b'<a:feed xmlns:a="http://www.w3.org/2005/Atom">', "", "feed", "application/xml"),
        (b"<feed><animals/></feed>", "application/xml", "xml", "application/xml"),
        (b'<rdf:RDF xmlns="http://purl.org/rss/1.0/">', "application/xml", "feed", "application/xml"),
        (b'<rdf:RDF xmlns:o="http://www.w3.org/2002/07/owl#">', "application/rdf+xml", "xml", "application/rdf+xml"),
        (b"<urlset><url>", "text/html", "sitemap", "application/xml"),
        (b"\xef\xbb\xbf\n<sitemapindex>", "application/xml", "sitemap", "application/xml"),
        ('<?xml version="1.0" encoding="utf-16"?><rss>'.encode("utf-16"), "", "feed", "application/xml"),
        (b"<!-- no end <rss>", "application/xml", "xml", "application/xml"),
        (b"<!DOCTYPE html><p>about &lt;rss></p>", "", "html", "text/html"),
        (b'{"a": 1}', "", "json", "application/json"),
        (b'{"a": 1}', "application/ld+json", "json", "application/ld+json"),
        (b"a,b\n1,2", "text/csv", "csv", "text/csv"),
        (b"a;b\n1;2", "application/vnd.ms-excel", "csv", "text/csv"),
        (b"a,b\n1,2", "application/csv; header=present", "csv", "application/csv"),
        (b"a\tb\n1\t2", "text/comma-separated-values", "csv", "text/comma-separated-values"),
        (b"<table><tr><td>1", "application/vnd.ms-excel", "html", "text/html"),
        (b"<?xml version='1.0'?><Workbook>", "application/vnd.ms-excel", "xml", "application/xml"),
        (b"# title", "text/markdown", "markdown", "text/markdown"),
        (b"just words", "text/plain", "text", "text/plain"),
        (b"just words", "", "text", "text/plain"),
        (b"just words", "application/octet-stream", "text", "text/plain"),
        (b"\x89PNG\r\n\x1a\n\x00", "text/html", "binary", "image/png"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8", "", "binary", "image/webp"),
        (b"\x00\x00\x00\x18ftypmp42", "", "binary", "video/mp4"),
        (b"PK\x03\x04", "", "binary", "application/zip"),
        (b"PK\x03\x04", DOCX, "office", DOCX),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "text/html", "office", "application/x-ole-storage"),
        (b"{\\rtf1 x}", "text/plain", "office", "application/rtf"),
        (b"\x1f\x8b\x08\x00", "application/xml", "gzip", "application/gzip"),
        (b"\xff\xfb\x90\x64\x00", "", "binary", "audio/mpeg"),
        (b"\x00\x00\x00\x1cftypM4A ", "text/plain", "binary", "audio/mp4"),
        (b"fLaC\x00\x00\x00\x22", "", "binary", "audio/flac"),
        (b"OggS\x00\x02", "text/html", "binary", "application/ogg"),
        (b"\x1aE\xdf\xa3", "", "binary", "video/webm"),
        (
            b"MZ\x90\x00\x03\x00\x00\x00\x04\x00",
            "text/plain",
            "binary",
            "application/vnd.microsoft.portable-executable",
        ),
        (b"BM\x36\x00\x0c\x00\x00\x00\x00\x00\x36\x00", "", "binary", "image/bmp"),
        (b"MZ is the mark of a program, BM that of a bitmap", "", "text", "text/plain"),
        (b"notes.txt".ljust(257, b"\x00") + b"ustar\x0000", "", "binary", "application/x-tar"),
        (b"\x00\x01\x00\x00\x00\x0f", "", "binary", "font/ttf"),
        (b"A file starts with `%PDF-1.7` and goes on", "text/markdown", "markdown", "text/markdown"),
        (b"junk of a gateway\n%PDF-1.7\n1 0 obj", "text/html", "pdf", "application/pdf"),
        (b"junk %PDF-1.7", "application/pdf", "pdf", "application/pdf"),
        (b"words", "image/png", "binary", "image/png"),
        (b'{"a": 1}\n{"a": 2}', "application/x-ndjson", "jsonl", "application/x-ndjson"),
        ("\u4e2d\u6587".encode("utf-16-le") * 9, "text/plain; charset=utf-16le", "text", "text/plain"),
        (b"\x01\x02\x03\x00\x04binary", "", "binary", "application/octet-stream"),
        (b"\x01\x02\x03\x00\x04binary", "application/x-thing", "binary", "application/x-thing"),
        ("<p>wide".encode("utf-16"), "text/html", "html", "text/html"),
        (b"", "text/html", "html", "text/html"),
        (b"", "", "text", "text/plain"),
    ],
)
def test_sniff(body: bytes, content_type: str, kind: str, media_type: str) -> None:
    found = sniff(body, content_type)
    assert (found.kind, found.media_type) == (kind, media_type)


@pytest.mark.parametrize(
    ("body", "content_type", "url", "kind"),
    [
        (b"a,b", "text/plain", "https://x.test/data.csv?raw=1", "csv"),
        (b"a\tb", "application/octet-stream", "https://x.test/data.TSV", "csv"),
        (b"# a", "", "https://x.test/README.md", "markdown"),
        (b'{"a": 1}', "text/plain", "https://x.test/a.json", "json"),
        (b"{}", "binary/octet-stream", "https://x.test/a.jsonl", "jsonl"),
        (b"<html>", "text/plain", "https://x.test/a.csv", "html"),
        (b"<p>not found", "text/plain", "https://x.test/a.md", "text"),
        (b"a,b", "text/html", "https://x.test/data.csv", "html"),
        (b"a,b", "text/plain", "https://x.csv/", "text"),
        (b"%PDF-1.4", "text/plain", "https://x.test/a.csv", "pdf"),
    ],
)
def test_an_address_speaks_where_the_server_says_nothing(body: bytes, content_type: str, url: str, kind: str) -> None:
    assert sniff(body, content_type, url).kind == kind


@pytest.mark.parametrize(
    ("header", "media_type"),
    [("Text/HTML; charset=x", "text/html"), ("text", ""), ("", ""), ("a/b c", ""), ("text/html;", "text/html")],
)
def test_media_type(header: str, media_type: str) -> None:
    assert parse_media_type(header) == media_type


def test_comments_in_a_row_are_read_once() -> None:
    assert sniff(b"<!-- -->" * 5000 + b"x", "").kind == "text"
    assert sniff(b"<!-- -->" * 400 + b"\n <html>", "").kind == "html"


def test_a_page_starts_after_comments_and_the_declaration_of_xml() -> None:
    start = b'<!-- a -- > <b> -->\n<?xml version="1.0"?><!-- c\n -->\r\n<HTML lang="en"><p>x'
    assert (sniff(start, "").kind, sniff(start, "text/plain").media_type) == ("html", "text/html")


def test_a_comment_without_end_does_not_hold_the_detection_up() -> None:
    assert sniff(b"<!--" * 1000, "").kind == "text"
