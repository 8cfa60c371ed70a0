"""Metrics as lines of CloudWatch's embedded metric format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sift import metrics
from sift.emf import published

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "sift")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "sift/test")
    yield
    metrics.send_to(None)


def lines(captured: Captured) -> list[dict[str, Any]]:
    return [json.loads(line) for line in captured.readouterr().out.splitlines()]


def test_one_line_for_each_dimension(capsys: Captured) -> None:
    @published
    def handler(event: dict[str, Any], context: Any) -> str:
        metrics.add(metrics.JOBS_CREATED)
        metrics.add(metrics.RESULT_BYTES, 700)
        metrics.add(metrics.RESULT_BYTES, 1)
        metrics.add(metrics.TARGET_ERRORS, label="timeout")
        metrics.add(metrics.TARGET_ERRORS)
        return "answer"

    assert handler({}, None) == "answer"
    plain, timeout, other = lines(capsys)
    (described,) = plain["_aws"]["CloudWatchMetrics"]
    assert described["Namespace"] == "sift/test"
    assert described["Dimensions"] == [["service"]]
    assert {one["Name"]: one["Unit"] for one in described["Metrics"]} == {
        "JobsCreated": "Count",
        "ResultBytes": "Bytes",
    }
    assert (plain["service"], plain["JobsCreated"], plain["ResultBytes"]) == ("sift", [1], [700, 1])
    assert set(timeout["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0]) == {"service", "code"}
    assert (timeout["code"], timeout["TargetErrors"], other["code"]) == ("timeout", [1], "other")
    handler({}, None)
    assert len(lines(capsys)) == 3, "nothing is told twice"
    metrics.add(metrics.JOBS_CREATED)
    assert lines(capsys) == [], "between invocations nothing is gathered"


def test_what_a_failing_handler_measured_is_told(capsys: Captured) -> None:
    @published
    def handler(event: dict[str, Any], context: Any) -> None:
        metrics.add(metrics.JOBS_REFUSED, label="caller_busy")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        handler({}, None)
    (line,) = lines(capsys)
    assert line["JobsRefused"] == [1]


@pytest.mark.parametrize("count", [0, 1, 100, 101, 250])
def test_no_value_is_lost_or_told_twice(count: int, capsys: Captured) -> None:
    @published
    def handler(event: dict[str, Any], context: Any) -> None:
        for value in range(count):
            metrics.add(metrics.TARGET_TIME, value)

    handler({}, None)
    assert [value for line in lines(capsys) for value in line["TargetTime"]] == list(range(count))
