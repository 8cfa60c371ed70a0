"""What log lines are about, and what of an exception is on them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from sift import logs
from sift.errors import Unavailable
from sift.loglines import MOST_LINKS, Failed, Formatter, describe, reported


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/a?key=1#b", "example.com"), ("http://ann:pw@EXAMPLE.com:8080/", "example.com"),
        ("https://[2001:db8::1]/", "2001:db8::1"), ("http://10.0.0.1", "10.0.0.1"),
        ("http://a b/", None), ("http://key%20/", None), ("mailto:ann", None), ("", None), ("http://[::1", None),
        ("http://pw\\@example.com/", "example.com"), ("http://ex;pw/", None), ("http://bücher.example/", None),
    ],
)  # fmt: skip
def test_the_host_of_a_url(url: str, host: str | None) -> None:
    assert logs.host_of(url) == host


@given(st.text() | st.builds("http://{}".format, st.text()))
def test_any_text_has_a_plain_host_or_none(url: str) -> None:
    host = logs.host_of(url)
    assert host is None or host.isascii()


def test_what_a_line_is_about_ends_with_its_block() -> None:
    with logs.about(job_id="a", index=1):
        with logs.about(index=2, host=None):
            logs.add(host="example.com", index=None)
            assert logs.subject() == {"job_id": "a", "index": 2, "host": "example.com"}
        assert logs.subject() == {"job_id": "a", "index": 1}
    assert logs.subject() == {}


def caught(make: Callable[[], Any]) -> BaseException:
    try:
        make()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def chained() -> None:
    try:
        try:
            raise ClientError({"Error": {"Code": "Throttled", "Message": "s3cret"}}, "PutItem")
        except ClientError as error:
            raise Unavailable("s3cret") from error
    except Unavailable:
        raise ExceptionGroup("s3cret", [OSError(2, "s3cret"), ValueError("s3cret")])  # noqa: B904


def test_an_exception_is_told_by_names_codes_and_places() -> None:
    told = describe(caught(chained))
    assert [line for line in told.splitlines() if not line.startswith("  ")] == [
        "builtins.ExceptionGroup", "builtins.FileNotFoundError (ENOENT)", "builtins.ValueError",
        "sift.errors.Unavailable (unavailable)", "botocore.exceptions.ClientError (Throttled of PutItem)",
    ]  # fmt: skip
    assert "test_logs.py" in told
    assert "s3cret" not in told


def test_a_chain_without_end_is_cut() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert describe(first).splitlines() == ["builtins.ValueError", "builtins.KeyError"]
    for _ in range(50):
        following = ValueError()
        following.__cause__, first = first, following
    assert len(describe(first).splitlines()) == MOST_LINKS


def test_a_line_has_its_own_ids_first() -> None:
    record = logging.LogRecord("sift", logging.INFO, __file__, 1, "a %s", ("line",), None)
    record.job_id = "own"
    with logs.about(job_id="bound", host="example.com"):
        line = json.loads(Formatter(serialize_stacktrace=False).format(record))
    assert (line["message"], line["job_id"], line["host"]) == ("a line", "own", "example.com")
    assert not hasattr(record, "host"), "other handlers get the record as it was"


@pytest.mark.parametrize(("error", "told"), [(KeyError("s3cret"), "KeyError"), (Unavailable("a port"), "a port")])
def test_lambda_is_told_no_message_but_our_own(error: Exception, told: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="sift")

    @reported
    def handler(event: dict[str, Any], context: Any) -> None:
        raise error

    with pytest.raises(Failed, match=f"^{told}$") as failure:
        handler({}, None)
    assert failure.value.__suppress_context__
    assert [record.message for record in caplog.records] == ["the invocation failed"]
