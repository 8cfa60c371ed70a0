"""What a document is, by its bytes first."""

from __future__ import annotations

import pytest

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
        (b'<?xml version="1.0"?><rss>', "", "xml", "application/xml"),
        (b"<rss>", "application/rss+xml", "xml", "application/rss+xml"),
        (b'{"a": 1}', "", "json", "application/json"),
        (b'{"a": 1}', "application/ld+json", "json", "application/ld+json"),
        (b"a,b\n1,2", "text/csv", "csv", "text/csv"),
        (b"# title", "text/markdown", "markdown", "text/markdown"),
        (b"just words", "text/plain", "text", "text/plain"),
        (b"just words", "", "text", "text/plain"),
        (b"just words", "application/octet-stream", "text", "text/plain"),
        (b"\x89PNG\r\n\x1a\n\x00", "text/html", "binary", "image/png"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8", "", "binary", "image/webp"),
        (b"\x00\x00\x00\x18ftypmp42", "", "binary", "video/mp4"),
        (b"PK\x03\x04", "", "binary", "application/zip"),
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
    ("header", "media_type"),
    [("Text/HTML; charset=x", "text/html"), ("text", ""), ("", ""), ("a/b c", ""), ("text/html;", "text/html")],
)
def test_media_type(header: str, media_type: str) -> None:
    assert parse_media_type(header) == media_type


def test_a_comment_without_end_does_not_hold_the_detection_up() -> None:
    assert sniff(b"<!--" * 1000, "").kind == "text"
