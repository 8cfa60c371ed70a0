"""Request bodies: which URLs and fields are taken."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from sift.api.models import URL_CHARS, JobRequest

GOOD = [
    "https://example.com", "http://example.com:8080/a?b=c#d", "HTTPS://EXAMPLE.COM/", "https://user:pw@example.com/",
    "https://[2001:db8::1]/", "https://xn--mnchen-3ya.example/", "https://münchen.example/straße?q=日本",
    "http://127.0.0.1/", "http://localhost/", "https://example.com/%20%00", "https://example.com./",
]  # fmt: skip
BAD = [
    "",
    " ",
    "example.com",
    "//example.com/",
    "/path",
    "ftp://example.com/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/html,hi",
    "https://",
    "https:///path",
    "https://:443/",
    "https://example.com:port/",
    "https://example.com:99999/",
    "https://[::1",
    "https://exa mple.com/",
    "https://example.com/a b",
    "https://example.com/\r\nHost: other",
    "https://example.com/\x00",
    "\thttps://example.com/",
    "https://example.com/\x7f",
    "https://@/",
    "http:example.com",
    "gopher://example.com/",
    "https://example.com/" + "a" * URL_CHARS,
]


def field_of(body: Any) -> str:
    """The field that the first error is about."""
    with pytest.raises(ValidationError) as caught:
        JobRequest.model_validate(body)
    return ".".join(str(part) for part in caught.value.errors()[0]["loc"])


@pytest.mark.parametrize("url", GOOD)
def test_urls_that_are_taken(url: str) -> None:
    assert JobRequest.model_validate({"targets": [{"url": url}]}).targets[0].url == url


@pytest.mark.parametrize("url", BAD)
def test_urls_that_are_none(url: str) -> None:
    assert field_of({"targets": [{"url": "https://example.com/"}, {"url": url}]}) == "targets.1.url"


def test_the_longest_url() -> None:
    url = "https://example.com/".ljust(URL_CHARS, "a")
    assert JobRequest.model_validate({"targets": [{"url": url}]}).targets[0].url == url


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"targets": None}, "targets"), ({"targets": {}}, "targets"), ({"targets": []}, ""),
        ({"targets": ["https://example.com/"]}, "targets.0"), ({"targets": [{}]}, "targets.0.url"),
        ({"targets": [{"url": 7}]}, "targets.0.url"),
        ({"targets": [{"url": "https://a.example", "uri": "x"}]}, "targets.0.uri"),
        ({"targets": [{"url": "https://a.example", "id": ""}]}, "targets.0.id"),
        ({"targets": [{"url": "https://a.example", "id": "x" * 201}]}, "targets.0.id"),
        ({"targets": [{"url": "https://a.example", "id": 7}]}, "targets.0.id"),
        ({"targets": [{"url": "https://a.example", "options": {"mode": "images"}}]}, "targets.0.options.mode"),
        ({"targets": [{"url": "https://a.example", "options": {"grep": "("}}]}, "targets.0.options.grep"),
        ({"options": {"mode": "fast"}}, "options.mode"), ({"options": {"jq": ""}}, "options.jq"),
        ({"options": {"question": "?!"}}, "options.question"), ({"options": {"context": 21}}, "options.context"),
        ({"options": {"context": True}}, "options.context"), ({"options": {"context": "2"}}, "options.context"),
        ({"options": {"pages": "1" * 201}}, "options.pages"), ({"window": 0}, "window"), ({"window": 33}, "window"),
        ({"window": 1.5}, "window"), ({"metadata": {"": "x"}}, "metadata.."), ({"metadata": {"a": 7}}, "metadata.a"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"), ({"metadata": {"a": "x" * 513}}, "metadata.a"),
        ({"fresh": "maybe"}, "fresh"), ({"webhook": {}}, "webhook"), ({"requests": []}, ""),
        ({"urls": []}, "urls"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(wrong: dict[str, Any], field: str) -> None:
    assert field_of({"targets": [{"url": "https://example.com/"}], **wrong}).startswith(field.rstrip("."))
