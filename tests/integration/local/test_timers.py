"""Schedules, event buses and asynchronous retries."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from sift_client.local.errors import TemplateError
from sift_client.local.timetable import read_expression
from tests.integration.local.project import Project, Start, wait_for

NOTE = """
import json
def lambda_handler(event, context):
    with open("notes", "a") as notes:
        notes.write(json.dumps([context.aws_request_id, event]) + "\\n")
    if isinstance(event, dict) and event.get("detail", {}).get("fail"):
        raise ValueError("no")
"""


def _notes(project: Project, function: str) -> list[Any]:
    path = project.root / "functions" / function / "notes"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _schedule(expression: str, **more: Any) -> dict[str, Any]:
    return {"Tick": {"Type": "Schedule", "Properties": {"Schedule": expression, **more}}}


def test_schedule_fires_again_and_again(project: Project, start: Start) -> None:
    project.add_function("Sweep", NOTE, Events=_schedule("rate(1 minute)"), ReservedConcurrentExecutions=1)
    project.add_function("Fixed", NOTE, Events=_schedule("rate(1 minute)", Input='{"a": 1}'))
    project.add_function("Off", NOTE, Events=_schedule("rate(1 minute)", Enabled=False))
    start(schedule_speed=120)
    wait_for(lambda: len(_notes(project, "Sweep")) >= 3 and _notes(project, "Fixed"))
    event = _notes(project, "Sweep")[0][1]
    assert (event["source"], event["detail-type"], event["detail"]) == ("aws.events", "Scheduled Event", {})
    assert event["resources"][0].endswith(":rule/sift-local-SweepTick")
    assert _notes(project, "Fixed")[0][1] == {"a": 1}
    assert _notes(project, "Off") == []


def test_scheduler_fills_in_its_times(project: Project, start: Start) -> None:
    text = '{"time": "<aws.scheduler.scheduled-time>", "name": "<aws.scheduler.schedule-arn>", "a": 1}'
    every = {"ScheduleExpression": "rate(1 minute)", "FlexibleTimeWindow": {"Mode": "OFF"}}
    project.add_function("Inner", NOTE, Events={"Tick": {"Type": "ScheduleV2", "Properties": {**every, "Input": text}}})
    project.add_function("Plain", NOTE, Events={"Tick": {"Type": "ScheduleV2", "Properties": every}})
    project.add_function("Outer", NOTE)
    target = {"Arn": {"Fn::GetAtt": ["Outer", "Arn"]}, "RoleArn": "arn:aws:iam::1:role/x", "Input": text}
    project.add("Timer", "AWS::Scheduler::Schedule", **every, Target=target)
    project.add("Off", "AWS::Scheduler::Schedule", **every, Target={**target, "Input": "{}"}, State="DISABLED")
    start(schedule_speed=120)
    wait_for(lambda: all(len(_notes(project, name)) >= 2 for name in ("Inner", "Plain", "Outer")), 240)
    for function, name in (("Inner", "sift-local-InnerTick"), ("Outer", "sift-local-Timer")):
        events = [event for _, event in _notes(project, function)]
        assert [(event["a"], event["name"].rpartition("/")[2]) for event in events] == [(1, name)] * len(events)
        times = [datetime.strptime(event["time"], "%Y-%m-%dT%H:%M:%S%z") for event in events]
        assert times == sorted(set(times)), "each firing has a time of its own"
    assert _notes(project, "Plain")[0][1]["source"] == "aws.scheduler"


def test_a_schedule_of_what_is_no_function_is_named(project: Project, start: Start) -> None:
    project.add("Queue", "AWS::SQS::Queue")
    target = {"Arn": {"Fn::GetAtt": ["Queue", "Arn"]}, "RoleArn": "arn:aws:iam::1:role/x"}
    project.add("Timer", "AWS::Scheduler::Schedule", ScheduleExpression="rate(1 minute)", Target=target)
    with pytest.raises(TemplateError, match=r"Timer: target .* is no function"):
        start()


def test_an_event_that_failed_for_good_goes_to_its_destination(project: Project, start: Start) -> None:
    project.add("Dead", "AWS::SQS::Queue")
    failure = {"Type": "SQS", "Destination": {"Fn::GetAtt": ["Dead", "Arn"]}}
    settings = {"MaximumRetryAttempts": 1, "DestinationConfig": {"OnFailure": failure}}
    project.add_function("Retry", NOTE, EventInvokeConfig=settings)
    stack = start(retry_speed=200)
    for event in ({"detail": {"fail": True}, "n": 7}, {"detail": {}}):
        stack.client("lambda").invoke(
            FunctionName="sift-local-Retry", InvocationType="Event", Payload=json.dumps(event)
        )
    ask = {"QueueUrl": stack.physical("Dead"), "MaxNumberOfMessages": 10}
    (message,) = wait_for(lambda: stack.client("sqs").receive_message(**ask).get("Messages"), 240)
    record = json.loads(message["Body"])
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert record["requestContext"]["approximateInvokeCount"] == 2
    assert record["requestPayload"] == {"detail": {"fail": True}, "n": 7}
    assert record["responsePayload"]["errorMessage"] == "no"


def test_rule_gets_the_events_of_its_bus_that_fit(project: Project, start: Start) -> None:
    project.add("Bus", "AWS::Events::EventBus", Name={"Ref": "AWS::StackName"})
    project.add("Queue", "AWS::SQS::Queue")
    pattern = {"source": ["sift"], "detail": {"status": ["done", "failed"]}}
    bus = {"EventBusName": {"Ref": "Bus"}}
    properties = {"Pattern": pattern, **bus}
    project.add_function("Notify", NOTE, Events={"Rule": {"Type": "EventBridgeRule", "Properties": properties}})
    target = {"Id": "queue", "Arn": {"Fn::GetAtt": ["Queue", "Arn"]}}
    project.add("Rule", "AWS::Events::Rule", EventPattern=pattern, Targets=[target], **bus)
    stack = start()

    def entry(status: str, **more: Any) -> dict[str, Any]:
        detail = json.dumps({"status": status})
        return {"Source": "sift", "DetailType": "job ended", "Detail": detail, **more}

    on_bus = {"EventBusName": stack.physical("Bus")}
    answer = stack.client("events").put_events(
        Entries=[entry("done"), entry("running", **on_bus), entry("failed", **on_bus)]
    )
    (note,) = wait_for(lambda: _notes(project, "Notify"))
    assert note[1]["detail"] == {"status": "failed"}
    assert note[1]["id"] == answer["Entries"][2]["EventId"]
    assert note[1]["detail-type"] == "job ended"
    (message,) = stack.client("sqs").receive_message(
        QueueUrl=stack.physical("Queue"), MaxNumberOfMessages=10, WaitTimeSeconds=5
    )["Messages"]
    assert json.loads(message["Body"]) == note[1]


@pytest.mark.parametrize(("settings", "runs"), [({}, 3), ({"MaximumRetryAttempts": 0}, 1)])
def test_failed_event_is_tried_again(project: Project, start: Start, settings: dict[str, int], runs: int) -> None:
    project.add_function("Retry", NOTE, EventInvokeConfig=settings)
    stack = start(retry_speed=200)
    client = stack.client("lambda")
    fail = json.dumps({"detail": {"fail": True}})
    client.invoke(FunctionName="sift-local-Retry", InvocationType="Event", Payload=fail)
    wait_for(lambda: len(_notes(project, "Retry")) == runs)
    # Longer than the longest pause before a try, 120 s at this speed.
    time.sleep(0.8)
    assert len(_notes(project, "Retry")) == runs
    # Every try of one event has the same request id.
    assert len({request_id for request_id, _ in _notes(project, "Retry")}) == 1


def test_throttled_event_waits_for_its_turn(project: Project, start: Start) -> None:
    source = """
    import time
    def lambda_handler(event, context):
        with open("notes", "a") as notes:
            notes.write('"begin"\\n')
        time.sleep(0.3)
        with open("notes", "a") as notes:
            notes.write('"end"\\n')
    """
    project.add_function("One", source, ReservedConcurrentExecutions=1)
    stack = start(retry_speed=10)
    for _ in range(3):
        stack.client("lambda").invoke(FunctionName="sift-local-One", InvocationType="Event", Payload="{}")
    wait_for(lambda: len(_notes(project, "One")) == 6)
    assert _notes(project, "One") == ["begin", "end"] * 3


@pytest.mark.parametrize(
    ("expression", "after", "due"),
    [
        ("rate(1 minute)", "2026-11-30T10:00:30", "2026-11-30T10:01:30"),
        ("rate(2 hours)", "2026-11-30T10:00:30", "2026-11-30T12:00:30"),
        ("cron(0 12 * * ? *)", "2026-11-30T12:00:00", "2026-12-01T12:00:00"),
        ("cron(0/15 8-17 ? * MON-FRI *)", "2026-11-27T17:50:00", "2026-11-30T08:00:00"),
        ("cron(30 6 1 JAN,JUL ? *)", "2026-11-30T00:00:00", "2027-01-01T06:30:00"),
    ],
)
def test_expressions(expression: str, after: str, due: str) -> None:
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    assert read_expression(expression)(moment) == datetime.fromisoformat(due).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "expression",
    ["rate(1 minutes)", "rate(2 minute)", "rate(0 minutes)", "rate(1 second)", "cron(* * * * * *)", "cron(L)",
     "cron(0 12 L * ? *)", "at(2026-01-01T00:00:00)"],
)  # fmt: skip
def test_bad_expressions_are_named(expression: str) -> None:
    with pytest.raises(TemplateError, match="schedule"):
        read_expression(expression)
