"""Event source mappings: batches, partial failures, dead letters, concurrency, crashes."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from sift_client.local import LocalStack
from tests.integration.local.project import Project, Start, wait_for

# Notes each record in a file of its own function's folder, then does what its body asks.
WORKER = """
import json, os, pathlib, time

def note(text):
    with open("notes", "a") as notes:
        notes.write(text + "\\n")

def lambda_handler(event, context):
    records = event["Records"]
    note("begin " + " ".join(r["body"] for r in records))
    for record in records:
        body = record["body"]
        if body == "crash" and record["attributes"]["ApproximateReceiveCount"] == "1":
            os._exit(1)
        if body == "raise":
            raise ValueError("no")
        if body.startswith("sleep"):
            time.sleep(float(body.split()[1]))
    note("end " + " ".join(r["body"] for r in records))
    failures = [r["messageId"] for r in records if r["body"] == "fail"]
    failures += ["unknown" for r in records if r["body"] == "bad id"]
    return {"batchItemFailures": [{"itemIdentifier": i} for i in failures]}
"""


def _add_worker(
    project: Project, visibility: int = 1, receives: int | None = None, settings: Any = None, **mapping: Any
) -> None:
    queue: dict[str, Any] = {"VisibilityTimeout": visibility}
    if receives:
        project.add("Dead", "AWS::SQS::Queue")
        arn = {"Fn::GetAtt": ["Dead", "Arn"]}
        queue["RedrivePolicy"] = {"deadLetterTargetArn": arn, "maxReceiveCount": receives}
    project.add("Queue", "AWS::SQS::Queue", **queue)
    properties = {
        "Queue": {"Fn::GetAtt": ["Queue", "Arn"]},
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        **mapping,
    }
    project.add_function(
        "Worker", WORKER, Events={"Queue": {"Type": "SQS", "Properties": properties}}, **(settings or {})
    )


def _send(stack: LocalStack, *bodies: str) -> None:
    entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)]
    stack.client("sqs").send_message_batch(QueueUrl=stack.physical("Queue"), Entries=entries)


def _warm(stack: LocalStack, project: Project) -> None:
    """Starts an environment, so that a short visibility is not used up by its start."""
    stack.invoke("Worker", {"Records": []})
    (project.root / "functions/Worker/notes").unlink()


def _left(stack: LocalStack, queue: str = "Queue") -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = []
    for _ in range(2):  # the two numbers are of two moments: a message that comes back in between is in neither
        answer = stack.client("sqs").get_queue_attributes(QueueUrl=stack.physical(queue), AttributeNames=names)
        found.append(sum(map(int, answer["Attributes"].values())))
    return max(found)


def _notes(project: Project) -> list[str]:
    path = project.root / "functions/Worker/notes"
    return path.read_text().splitlines() if path.exists() else []


def test_record_has_lambdas_shape(project: Project, start: Start) -> None:
    source = """
    import json
    def lambda_handler(event, context):
        with open("event", "w") as out:
            json.dump(event, out)
    """
    project.add("Queue", "AWS::SQS::Queue")
    queue = {"Queue": {"Fn::GetAtt": ["Queue", "Arn"]}}
    project.add_function("Worker", source, Events={"Queue": {"Type": "SQS", "Properties": queue}})
    stack = start()
    stack.client("sqs").send_message(
        QueueUrl=stack.physical("Queue"),
        MessageBody="héllo",
        MessageGroupId="job_1",
        MessageAttributes={"a": {"DataType": "String", "StringValue": "1"}},
    )
    wait_for(lambda: _left(stack) == 0)
    (record,) = json.loads((project.root / "functions/Worker/event").read_text())["Records"]
    assert record["body"] == "héllo"
    assert record["eventSource"] == "aws:sqs"
    assert record["eventSourceARN"].endswith(":sift-local-Queue")
    assert record["awsRegion"] == "us-east-1"
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert record["attributes"]["MessageGroupId"] == "job_1"
    assert {"SentTimestamp", "SenderId", "ApproximateFirstReceiveTimestamp"} <= set(record["attributes"])
    assert record["messageAttributes"]["a"] == {
        "stringValue": "1",
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": "String",
    }
    assert {"messageId", "receiptHandle", "md5OfBody"} <= set(record)


def test_whole_batch_succeeds_and_is_deleted(project: Project, start: Start) -> None:
    _add_worker(project, visibility=30)
    stack = start()
    _send(stack, *map(str, range(10)))
    wait_for(lambda: _left(stack) == 0)
    assert _notes(project) == ["begin 0 1 2 3 4 5 6 7 8 9", "end 0 1 2 3 4 5 6 7 8 9"]


def test_only_reported_items_come_back_and_end_as_dead_letters(project: Project, start: Start) -> None:
    _add_worker(project, visibility=2, receives=2)
    stack = start()
    _warm(stack, project)
    _send(stack, "ok", "fail")
    wait_for(lambda: _left(stack, "Dead") == 1)
    assert _left(stack) == 0
    assert _notes(project) == ["begin ok fail", "end ok fail", "begin fail", "end fail"]


@pytest.mark.parametrize("reason", ["raise", "bad id"])
def test_whole_batch_comes_back(project: Project, start: Start, reason: str) -> None:
    _add_worker(project, receives=1)
    stack = start()
    _send(stack, "ok", reason)
    wait_for(lambda: _left(stack, "Dead") == 2)


def test_crash_in_mid_batch_brings_the_messages_back(project: Project, start: Start) -> None:
    _add_worker(project, visibility=2)
    stack = start()
    _warm(stack, project)
    _send(stack, "ok", "crash")
    wait_for(lambda: _left(stack) == 0)
    assert sorted(_notes(project)[1].split()[1:]) == ["crash", "ok"]


def test_killed_environment_brings_the_messages_back(project: Project, start: Start) -> None:
    _add_worker(project, visibility=4)
    stack = start()
    _warm(stack, project)
    _send(stack, "sleep 1")
    wait_for(lambda: _notes(project))
    (pid,) = stack.environments()["Worker"]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: _left(stack) == 0)
    assert _notes(project) == ["begin sleep 1", "begin sleep 1", "end sleep 1"]


def test_maximum_concurrency_holds(project: Project, start: Start) -> None:
    _add_worker(project, visibility=30, BatchSize=1, ScalingConfig={"MaximumConcurrency": 2})
    stack = start()
    _send(stack, *["sleep 0.3"] * 6)
    wait_for(lambda: _left(stack) == 0)
    assert _most_at_once(_notes(project)) == 2


def test_reserved_concurrency_holds_and_throttled_batches_are_tried_again(project: Project, start: Start) -> None:
    settings = {"ReservedConcurrentExecutions": 1}
    _add_worker(project, visibility=30, BatchSize=1, settings=settings)
    stack = start()
    _send(stack, *["sleep 0.2"] * 4)
    wait_for(lambda: _left(stack) == 0)
    assert _most_at_once(_notes(project)) == 1
    assert len(_notes(project)) == 8


def test_batching_window_fills_a_batch_over_10(project: Project, start: Start) -> None:
    _add_worker(project, visibility=30, BatchSize=25, MaximumBatchingWindowInSeconds=1)
    stack = start()
    for _ in range(2):
        _send(stack, *["x"] * 10)
    wait_for(lambda: _left(stack) == 0)
    assert _notes(project)[0] == "begin" + " x" * 20


def test_batch_over_6_mb_goes_in_parts(project: Project, start: Start) -> None:
    _add_worker(project, visibility=30)
    stack = start()
    stack._mappings[0].stop()
    for letter in "abcdefg":
        stack.client("sqs").send_message(QueueUrl=stack.physical("Queue"), MessageBody=letter * 1_000_000)
    stack.restart_pollers()
    wait_for(lambda: _left(stack) == 0)
    begins = [line for line in _notes(project) if line.startswith("begin")]
    assert [len(line.split()) - 1 for line in begins] == [6, 1]


def test_visibility_set_by_the_function_counts(project: Project, start: Start) -> None:
    source = """
    import os, boto3
    def lambda_handler(event, context):
        record = event["Records"][0]
        with open("notes", "a") as notes:
            notes.write(record["attributes"]["ApproximateReceiveCount"] + "\\n")
        if record["attributes"]["ApproximateReceiveCount"] == "3":
            return {}
        boto3.client("sqs").change_message_visibility(
            QueueUrl=os.environ["QUEUE_URL"], ReceiptHandle=record["receiptHandle"], VisibilityTimeout=0)
        return {"batchItemFailures": [{"itemIdentifier": record["messageId"]}]}
    """
    project.add("Queue", "AWS::SQS::Queue", VisibilityTimeout=600)
    properties = {
        "Queue": {"Fn::GetAtt": ["Queue", "Arn"]},
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
    }
    project.add_function(
        "Worker",
        source,
        Environment={"Variables": {"QUEUE_URL": {"Ref": "Queue"}}},
        Events={"Queue": {"Type": "SQS", "Properties": properties}},
    )
    stack = start()
    _send(stack, "busy")
    wait_for(lambda: _left(stack) == 0)
    assert _notes(project) == ["1", "2", "3"]


def _most_at_once(notes: list[str]) -> int:
    running = most = 0
    for note in notes:
        running += 1 if note.startswith("begin") else -1
        most = max(most, running)
    return most
