"""`sift teardown` on a small stack with the outputs of the template, in an account that is moto's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from sift_client.cli import main

REGION = "us-east-1"
KEY = {"AttributeName": "pk", "AttributeType": "S"}
STACK = {
    "Resources": {
        "JobsTable": {
            "Type": "AWS::DynamoDB::Table",
            "DeletionPolicy": "Retain",
            "Properties": {
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [KEY],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            },
        },
        "ContentBucket": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"},
        "FetchQueue": {"Type": "AWS::SQS::Queue"},
    },
    "Outputs": {"TableName": {"Value": {"Ref": "JobsTable"}}, "BucketName": {"Value": {"Ref": "ContentBucket"}}},
}


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Physical ids of a deployed stack `sift`; its bucket holds objects."""
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws():
        cloudformation = boto3.client("cloudformation")
        cloudformation.create_stack(StackName="sift", TemplateBody=json.dumps(STACK))
        rows = cloudformation.describe_stack_resources(StackName="sift")["StackResources"]
        physical = {row["LogicalResourceId"]: row["PhysicalResourceId"] for row in rows}
        _fill(physical["ContentBucket"], 3)
        yield physical


def _fill(bucket: str, count: int) -> None:
    s3 = boto3.client("s3")
    for number in range(count):
        s3.put_object(Bucket=bucket, Key=f"jobs/{number}", Body=b"x")


def _left(physical: dict[str, str]) -> set[str]:
    """What of the stack is still there."""
    left = set()
    checks: dict[str, Any] = {
        "JobsTable": lambda name: boto3.client("dynamodb").describe_table(TableName=name),
        "ContentBucket": lambda name: boto3.client("s3").head_bucket(Bucket=name),
        "FetchQueue": lambda url: boto3.client("sqs").get_queue_attributes(QueueUrl=url),
    }
    for name, look in checks.items():
        try:
            look(physical[name])
        except ClientError:
            continue
        left.add(name)
    return left


def test_everything_goes(stack: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _left(stack) == {"JobsTable", "ContentBucket", "FetchQueue"}
    _fill(stack["ContentBucket"], 1005)  # more than one page
    assert main(["teardown", "--stack", "sift", "--yes"]) == 0
    assert _left(stack) == set()
    shown = capsys.readouterr().out
    assert stack["JobsTable"] in shown
    assert stack["ContentBucket"] in shown


@pytest.mark.parametrize(("typed", "code", "left"), [("sift", 0, 0), ("", 1, 3), ("other", 1, 3)])
def test_it_asks_first(
    stack: dict[str, str], monkeypatch: pytest.MonkeyPatch, typed: str, code: int, left: int
) -> None:
    monkeypatch.setattr("builtins.input", lambda _question: typed)
    assert main(["teardown", "--stack", "sift"]) == code
    assert len(_left(stack)) == left


def test_it_goes_on_where_it_was_interrupted(stack: dict[str, str]) -> None:
    cloudformation = boto3.client("cloudformation")
    arn = cloudformation.describe_stacks(StackName="sift")["Stacks"][0]["StackId"]
    cloudformation.delete_stack(StackName="sift")
    assert _left(stack) == {"JobsTable", "ContentBucket"}
    boto3.client("dynamodb").delete_table(TableName=stack["JobsTable"])
    assert main(["teardown", "--stack", arn, "--yes"]) == 0
    assert _left(stack) == set()


def test_another_stack_is_left_alone(stack: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    other = {"Resources": {"FetchQueue": STACK["Resources"]["FetchQueue"]}}
    boto3.client("cloudformation").create_stack(StackName="other", TemplateBody=json.dumps(other))
    assert main(["teardown", "--stack", "other", "--yes"]) == 4
    assert "no stack of sift" in capsys.readouterr().err
    assert main(["teardown", "--stack", "none", "--yes"]) == 4
    assert "AWS refused DescribeStacks" in capsys.readouterr().err
