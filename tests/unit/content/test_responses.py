"""What the head of a response means."""

from __future__ import annotations

import errno
from datetime import UTC, datetime

import pytest

from sift.connections import is_refused, parse_retry_after
from sift.content.responses import check_status, read_codings, read_headers, read_location
from sift.errors import TargetBusy, TargetFailed

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        (" 120 ", 120.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("Fri, 01 Jan 2027 12:00:00 GMT", 86400.0),
        ("9" * 40, 86400.0),
        ("-3", None),
        ("soon", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2027 00:00:00 +99999999999999999999", None),
        ("", None),
    ],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


def test_headers_by_name() -> None:
    sent = [
        (b"Content-Type", b"text/html"),
        (b"X-A", b"caf\xc3\xa9"),
        (b"x-b", b"caf\xe9"),
        (b"LINK", b"a"),
        (b"link", b"b"),
    ]
    assert read_headers(sent) == {"content-type": "text/html", "x-a": "caf\u00e9", "x-b": "caf\u00e9", "link": "a, b"}


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504, 522])
def test_passing_trouble_is_busy(status: int) -> None:
    with pytest.raises(TargetBusy) as caught:
        check_status(status, {"retry-after": "7"}, NOW)
    assert (caught.value.status, caught.value.retry_after) == (status, 7.0)


@pytest.mark.parametrize("status", [304, 400, 401, 403, 404, 410, 418, 500, 501])
def test_the_rest_is_final(status: int) -> None:
    with pytest.raises(TargetFailed) as caught:
        check_status(status, {}, NOW)
    assert (caught.value.code, caught.value.status) == ("http_error", status)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"/next", "/next"),
        ("/grüße".encode(), "/grüße"),
        ("/grüße".encode("latin-1"), "/gr%FC%DFe"),
        (b"  /a b ", "/a%20b"),
        (b"", None),
    ],
)
def test_location(value: bytes, text: str | None) -> None:
    assert read_location([(b"Location", value)]) == text


@pytest.mark.parametrize("value", [b"http://127.0.\t0.1/", b"/\\127.0.0.1/", b"http:\\\\127.0.0.1\\"])
def test_a_location_that_parsers_read_differently_is_refused(value: bytes) -> None:
    with pytest.raises(TargetFailed) as caught:
        read_location([(b"location", value)])
    assert caught.value.code == "invalid_url"


def test_codings() -> None:
    assert read_codings({"content-encoding": "x-gzip, utf-8, BR"}) == ["gzip", "br"]
    assert read_codings({}) == []
    with pytest.raises(TargetFailed):
        read_codings({"content-encoding": "gzip, gzip, gzip"})


def test_a_refused_connection_is_found_below_other_errors() -> None:
    inner = OSError(errno.ECONNREFUSED, "refused")
    outer = RuntimeError("connect failed")
    outer.__cause__ = ExceptionGroup("all", [inner])
    assert is_refused(outer)
    assert not is_refused(RuntimeError("other"))
