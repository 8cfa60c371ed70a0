"""From start to end: drain, state on disk, signals, and a stack that is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest

from sift_client.local import LocalStack, TemplateError
from tests.integration.local.project import Project, Start, http_event, request, wait_for

SLOW = """
import pathlib, time
def lambda_handler(event, context):
    pathlib.Path("begun").touch()
    time.sleep(1)
    pathlib.Path("done").touch()
    return "done"
"""
CLIENT = Path(__file__).parents[3] / "client"


def _add_worker(project: Project, **properties: object) -> None:
    project.add("Queue", "AWS::SQS::Queue", VisibilityTimeout=30)
    mapping = {"Queue": {"Fn::GetAtt": ["Queue", "Arn"]}, "BatchSize": 1, **properties}
    project.add_function("Worker", SLOW, Events={"Queue": {"Type": "SQS", "Properties": mapping}})


def _send(stack: LocalStack, *bodies: str) -> None:
    for body in bodies:
        stack.client("sqs").send_message(QueueUrl=stack.physical("Queue"), MessageBody=body)


def _count(stack: LocalStack) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = stack.client("sqs").get_queue_attributes(QueueUrl=stack.physical("Queue"), AttributeNames=names)
    return sum(map(int, answer["Attributes"].values()))


def test_drain_ends_what_runs_and_begins_nothing_new(project: Project, start: Start) -> None:
    _add_worker(project, ScalingConfig={"MaximumConcurrency": 2})
    stack = start()
    _send(stack, *"abcde")
    worker = project.root / "functions/Worker"
    wait_for(lambda: (worker / "begun").exists())
    stack.drain()
    assert (worker / "done").exists()
    assert 1 <= _count(stack) <= 4
    assert stack.environments() == {"Worker": []}
    with pytest.raises((ConnectionError, urllib.error.URLError)):
        request(stack.url + "/")


def test_drain_in_a_hurry_gives_the_messages_back(project: Project, start: Start) -> None:
    project.body["Globals"]["Function"]["Timeout"] = 60
    _add_worker(project)
    (project.root / "functions/Worker/app.py").write_text(SLOW.replace("sleep(1)", "sleep(60)"))
    stack = start()
    _send(stack, "a")
    wait_for(lambda: (project.root / "functions/Worker/begun").exists())
    stack.hurry()
    stack.drain()
    assert not (project.root / "functions/Worker/done").exists()
    assert _count(stack) == 1


def test_state_goes_on_in_the_next_stack(project: Project, start: Start, tmp_path: Path) -> None:
    project.add_table()
    project.add("Bucket", "AWS::S3::Bucket")
    project.add("Queue", "AWS::SQS::Queue")
    file = tmp_path / "deep" / "state.gz"
    first = start(state=file, make_key=lambda stack: "the key")
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}, "raw": {"B": b"\x00\xff"}, "map": {"M": {"n": {"N": "1.5"}}}}
    first.client("dynamodb").put_item(TableName=first.physical("Table"), Item=item)
    first.client("s3").put_object(
        Bucket=first.physical("Bucket"), Key="jobs/é.md", Body=b"\x89", ContentType="text/markdown", Metadata={"a": "b"}
    )
    sqs = first.client("sqs")
    attribute = {"raw": {"DataType": "Binary", "BinaryValue": b"\xff"}}
    sqs.send_message(
        QueueUrl=first.physical("Queue"), MessageBody="now", MessageGroupId="g", MessageAttributes=attribute
    )
    sqs.send_message(QueueUrl=first.physical("Queue"), MessageBody="later", DelaySeconds=600)
    first.drain()
    first.close()
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(file.parent) == ["state.gz"]

    second = start(state=file, make_key=lambda stack: "another")
    assert second.key == "the key"
    stored = second.client("dynamodb").scan(TableName=second.physical("Table"))["Items"]
    assert stored == [item]
    answer = second.client("s3").get_object(Bucket=second.physical("Bucket"), Key="jobs/é.md")
    assert (answer["Body"].read(), answer["ContentType"], answer["Metadata"]) == (b"\x89", "text/markdown", {"a": "b"})
    (message,) = second.client("sqs").receive_message(
        QueueUrl=second.physical("Queue"), MaxNumberOfMessages=10,
        MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"],
    )["Messages"]  # fmt: skip
    assert message["Body"] == "now"
    assert message["MessageAttributes"]["raw"]["BinaryValue"] == b"\xff"
    assert message["Attributes"]["MessageGroupId"] == "g"
    delayed = second.client("sqs").get_queue_attributes(
        QueueUrl=second.physical("Queue"), AttributeNames=["ApproximateNumberOfMessagesDelayed"]
    )
    assert delayed["Attributes"]["ApproximateNumberOfMessagesDelayed"] == "1"


def test_bad_state_is_refused_and_left_alone(project: Project, start: Start, tmp_path: Path) -> None:
    file = tmp_path / "state.gz"
    file.write_bytes(b"not gzip")
    with pytest.raises(TemplateError, match="not a state file"):
        start(state=file)
    assert file.read_bytes() == b"not gzip"


def test_restarted_pollers_go_on(project: Project, start: Start) -> None:
    _add_worker(project)
    stack = start()
    stack.restart_pollers()
    _send(stack, "a")
    wait_for(lambda: _count(stack) == 0)


@contextlib.contextmanager
def _command(template: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    code = (
        "import argparse, sys; from sift_client.local import command as c; p = argparse.ArgumentParser(); "
        "c.add_arguments(p); sys.exit(c.run(p.parse_args()))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "--port", "0", "--template", str(template), *arguments],
        env={**os.environ, "PYTHONPATH": str(CLIENT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines = {}
        while "logs" not in lines:
            name, _, value = process.stdout.readline().partition(" ")
            assert name, process.communicate()[1]
            lines[name] = value.strip()
        yield process, lines
    finally:
        process.kill()
        process.communicate()


def test_command_drains_on_ctrl_c(project: Project, tmp_path: Path) -> None:
    project.add_function("Slow", SLOW, Events=http_event())
    project.add("Odd", "AWS::Nobody::KnowsIt")
    file = tmp_path / "state.gz"
    with _command(project.write(), "--state", str(file), "--log-dir", str(tmp_path / "logs")) as (process, lines):
        answers: list[bytes] = []
        import threading

        asking = threading.Thread(target=lambda: answers.append(request(lines["api"] + "/x").body))
        asking.start()
        wait_for(lambda: (project.root / "functions/Slow/begun").exists())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        asking.join()
        assert process.returncode == 0
        assert answers == [b"done"]
        assert "Odd (AWS::Nobody::KnowsIt)" in errors
        assert "draining" in errors
        assert file.exists()


def test_second_signal_ends_at_once(project: Project) -> None:
    project.body["Globals"]["Function"]["Timeout"] = 300
    _add_worker(project)
    (project.root / "functions/Worker/app.py").write_text(SLOW.replace("sleep(1)", "sleep(300)"))
    (project.root / "functions/Other").mkdir()
    source = """
    import os, boto3
    def lambda_handler(event, context):
        boto3.client("sqs").send_message(QueueUrl=os.environ["QUEUE_URL"], MessageBody="x")
    """
    project.add_function(
        "Send", source, Events=http_event(), Environment={"Variables": {"QUEUE_URL": {"Ref": "Queue"}}}
    )
    with _command(project.write()) as (process, lines):
        assert request(lines["api"] + "/x").status == 200
        wait_for(lambda: (project.root / "functions/Worker/begun").exists())
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        while "draining" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_environments_die_with_a_killed_stack(project: Project) -> None:
    source = """
    import json, os, pathlib, time
    def lambda_handler(event, context):
        pathlib.Path("pid").write_text(str(os.getpid()))
        time.sleep(300)
    """
    project.body["Globals"]["Function"]["Timeout"] = 300
    project.add("Queue", "AWS::SQS::Queue")
    project.add_function("Hang", source, Events={
        "Tick": {"Type": "HttpApi", "Properties": {"Path": "/hang", "Method": "GET", "TimeoutInMillis": 500}}
    })  # fmt: skip
    with _command(project.write()) as (process, lines):
        assert request(lines["api"] + "/hang").status == 503
        pid = int((project.root / "functions/Hang/pid").read_text())
        process.kill()
        wait_for(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2])


def test_command_names_what_is_wrong(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    import argparse

    from sift_client.local.command import add_arguments, run

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert run(parser.parse_args(["--template", str(project.root / "none.yaml")])) == 1
    assert "none.yaml" in capsys.readouterr().err
    assert run(parser.parse_args(["--template", str(project.write()), "--parameter", "X"])) == 2
    assert run(parser.parse_args(["--template", str(project.write()), "--parameter", "X=1"])) == 1
    assert "unknown parameters ['X']" in capsys.readouterr().err


def test_state_file_is_json_that_a_person_can_read(project: Project, start: Start, tmp_path: Path) -> None:
    import gzip

    project.add_table()
    stack = start(state=tmp_path / "state.gz")
    stack.drain()
    state = json.loads(gzip.decompress((tmp_path / "state.gz").read_bytes()))
    assert state == {
        "version": 1,
        "key": None,
        "site_port": None,
        "tables": {"Table": []},
        "buckets": {},
        "queues": {},
    }
