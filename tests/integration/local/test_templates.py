"""Reading templates: functions and conditions of CloudFormation, Globals, and naming what is not understood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sift_client.local import LocalStack, TemplateError
from sift_client.local.document import read_document
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint
from tests.integration.local.project import Project, Start, http_event, request

TEMPLATE = """
AWSTemplateFormatVersion: 2010-09-09
Parameters:
  Size: {Type: Number, Default: 20, MinValue: 1, MaxValue: 1000}
  Reserve: {Type: String, Default: "true", AllowedValues: ["true", "false"]}
Conditions:
  Reserved: !Equals [!Ref Reserve, "true"]
  Single: !Equals [!Ref Size, 1]
  Both: !And [!Condition Reserved, !Not [!Condition Single]]
  Either: !Or [!Condition Single, !Condition Reserved]
Globals:
  Function:
    Runtime: python3.13
    Handler: app.lambda_handler
    Timeout: 7
    Environment: {Variables: {A: common, B: common}}
    Layers: [!Ref Code]
Resources:
  Code: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer}}
  Only: {Type: AWS::SQS::Queue, Condition: Single}
  Queue: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: !If [Both, 60, 30]}}
  Work:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: work/
      Timeout: 9
      ReservedConcurrentExecutions: !If [Reserved, !Ref Size, !Ref "AWS::NoValue"]
      Environment:
        Variables:
          B: own
          URL: !Ref Queue
          NAME: !GetAtt Queue.QueueName
          TEXT: !Sub "${Size} of ${Queue.Arn} in ${AWS::Region}, ${!literal}"
          MORE: !Sub ["${x}-${Size}", {x: !Join ["+", [a, !Ref Size]]}]
          PART: !Select [1, !Split [":", !GetAtt Queue.Arn]]
          API: !GetAtt Api.ApiEndpoint
          FLAG: true
      Events:
        Queue:
          Type: SQS
          Properties:
            Queue: !GetAtt Queue.Arn
            ScalingConfig: !If [Single, !Ref "AWS::NoValue", {MaximumConcurrency: !Ref Size}]
  Api: {Type: AWS::Serverless::HttpApi}
Outputs:
  Unused: {Value: !ImportValue Nothing}
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "layer").mkdir()
    path = tmp_path / "template.yaml"
    path.write_text(TEMPLATE)
    return path


def _plan(path: Path, **parameters: str) -> Any:
    document = read_document(path, parameters)
    return make_blueprint(document, Naming(document, "st", "123456789012", "http://aws", "http://api"))


def test_functions_and_conditions_are_resolved(template: Path) -> None:
    plan = _plan(template)
    work = plan.functions["Work"]
    assert work.environment == {
        "A": "common",
        "B": "own",
        "URL": "http://aws/123456789012/st-Queue",
        "NAME": "st-Queue",
        "TEXT": "20 of arn:aws:sqs:us-east-1:123456789012:st-Queue in us-east-1, ${literal}",
        "MORE": "a+20-20",
        "PART": "aws",
        "API": "http://api",
        "FLAG": "true",
    }
    assert (work.timeout, work.memory, work.reserved, work.layers) == (9, 128, 20, ())
    assert plan.mappings[0].maximum == 20
    assert plan.queues["Queue"].attributes == {"VisibilityTimeout": "60"}
    assert "Only" not in plan.queues
    assert plan.unknown == []


def test_parameters_change_what_is_there(template: Path) -> None:
    plan = _plan(template, Size="1", Reserve="false")
    assert plan.functions["Work"].reserved is None
    assert plan.mappings[0].maximum is None
    assert set(plan.queues) == {"Queue", "Only"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("!Ref Queue\n", "!Ref Nothing\n", "Nothing"),
        ("!GetAtt Queue.QueueName", "!GetAtt Queue.Colour", "Queue.Colour"),
        ('!Join ["+", [a, !Ref Size]]', "!Cidr [a]", "Fn::Cidr"),
        ("!If [Both, 60, 30]", "!If [Neither, 60, 30]", "Neither"),
        ("Type: SQS", "Type: Kinesis", "Work.Queue: events of type Kinesis"),
        ("FLAG: true", "AWS_REGION: x", "AWS_REGION"),
        ("FLAG: true", "FLAG: " + "x" * 4096, "environment variables of"),
        ("Timeout: 9", "Timeout: 901", "Timeout 901"),
        ("CodeUri: work/", "CodeUri: nowhere/", "nowhere"),
        ("MaximumConcurrency: !Ref Size", "MaximumConcurrency: 1", "MaximumConcurrency 1"),
        ("Runtime: python3.13", "Runtime: nodejs22.x", "nodejs22.x"),
        ("Conditions:", "Surprise: {}\nConditions:", "Surprise"),
        ("Default: 20", "Default: 2000", "Size"),
    ],
)
def test_what_cannot_run_is_an_error_that_names_it(template: Path, old: str, new: str, message: str) -> None:
    assert old in TEMPLATE
    template.write_text(TEMPLATE.replace(old, new))
    with pytest.raises(TemplateError, match=message):
        _plan(template)


def test_what_is_not_understood_is_named(project: Project, start: Start) -> None:
    project.add("Odd", "AWS::Kinesis::Stream")
    project.add("Alarm", "AWS::CloudWatch::Alarm", MetricName="x")
    project.add("Queue", "AWS::SQS::Queue", VisibilityTimeout=3, Colour="red", Tags=[])
    project.add_function("Echo", "", Events=http_event(RouteSettings={}), Tracing="Active", FileSystemConfigs=[])
    stack = start()
    assert sorted(stack.unknown) == [
        "Echo.Route: RouteSettings",
        "Echo: FileSystemConfigs",
        "Odd (AWS::Kinesis::Stream)",
        "Queue: Colour",
    ]
    assert sorted(stack.inert) == ["Alarm (AWS::CloudWatch::Alarm)", "Echo: Tracing", "Queue: Tags"]


def test_rules_of_the_template_hold(project: Project, start: Start) -> None:
    project.body["Parameters"] = {"Size": {"Type": "Number", "Default": 1}}
    project.body["Rules"] = {
        "Big": {
            "Assertions": [
                {"Assert": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Size"}, 1]}]}, "AssertDescription": "too small"}
            ]
        }
    }
    start(parameters={"Size": "2"})
    with pytest.raises(TemplateError, match="too small"):
        start()


def test_route_given_twice_is_an_error(project: Project, start: Start) -> None:
    for name in "AB":
        project.add_function(name, "", Events=http_event("GET", "/same"))
    with pytest.raises(TemplateError, match="GET /same"):
        start()


def test_function_added_to_a_copy_of_the_projects_template_is_served(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    text = (root / "template.yaml").read_text()
    added = """
  AddedFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: added/
      Events:
        Route:
          Type: HttpApi
          Properties: { ApiId: !Ref HttpApi, Method: GET, Path: "/added/{name}" }

Outputs:
"""
    (tmp_path / "template.yaml").write_text(text.replace("\nOutputs:\n", added))
    for folder in ("functions", "layers"):
        (tmp_path / folder).symlink_to(root / folder)
    (tmp_path / "added").mkdir()
    (tmp_path / "added" / "app.py").write_text(
        "import os, sift\n"
        "def lambda_handler(event, context):\n"
        "    return [event['pathParameters']['name'], os.environ['TABLE_NAME'], sift.__file__]\n"
    )
    with LocalStack(tmp_path / "template.yaml", log_dir=tmp_path / "logs", make_key=lambda stack: None) as stack:
        name, table, source = request(f"{stack.url}/added/x").json()
        assert (name, table) == ("x", stack.physical("JobsTable"))
        assert Path(source).is_relative_to(root / "layers/sift")
        assert stack.unknown == []
