"""One document through `extract`, as its child runs it."""

from __future__ import annotations

from typing import Any

import pytest

from sift.content.extraction import extract

URL = "https://site.test/dir/document"


def read(body: bytes, content_type: str = "", *, url: str = URL, **options: Any) -> tuple[str, str, dict[str, Any]]:
    """Content, its media type without the charset, and meta."""
    answer, content = _run(body, content_type, url, options)
    assert "error" not in answer, answer
    media_type, _, charset = answer["content_type"].partition("; ")
    assert charset == "charset=utf-8"
    assert answer["meta"]["chars"] == len(content.decode())
    return content.decode(), media_type, answer["meta"]


def fail(body: bytes, content_type: str = "", *, url: str = URL, **options: Any) -> dict[str, Any]:
    """The error of a document that is refused; each has a detail and a hint."""
    answer, content = _run(body, content_type, url, options)
    assert content == b""
    error = answer.get("error")
    if not isinstance(error, dict):
        pytest.fail(f"no error: {answer}")
    assert error["detail"]
    assert error["hint"]
    return error


def _run(body: bytes, content_type: str, url: str, options: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    head = {"url": url, "content_type": content_type, "mode": "auto", "pages": None, "engine": "pdfium", **options}
    return extract(head, body)
