"""What the template consists of, and that the linter and the code agree with it."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sift.bootstrap.workers import REQUEST_SECONDS
from sift.services.work import RESERVE_SECONDS
from sift.upstream import MAX_RESPONSE_BYTES
from tests.template.document import ROOT, Template, evaluate, events, functions, resources, target, variables

FUNCTIONS = {
    "ApiFunction": "ApiSettings", "FetchFunction": "FetchSettings",
    "FetchNowFunction": "FetchNowSettings", "InferenceFunction": "InferenceSettings", "SweepFunction": "SweepSettings",
    "AssembleFunction": "AssembleSettings",
    "ScheduleFunction": "ScheduleSettings", "NotifyFunction": "NotifySettings",
}  # fmt: skip
# Powertools' Logger reads these by itself.
READ_BY_POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOG_LEVEL", "POWERTOOLS_METRICS_NAMESPACE"}
HANDLER_LINES = 80


def _handler(function: dict[str, Any]) -> tuple[Path, str]:
    module, name = function["Handler"].split(".")
    return ROOT / function["CodeUri"] / f"{module}.py", name


def test_functions_are_those_the_tests_know(template: Template) -> None:
    assert functions(template).keys() == FUNCTIONS.keys()


def test_each_trigger_is_there(template: Template) -> None:
    # The rules look at what is there; without this, a template without triggers would keep them all.
    found = functions(template)
    routes = {f"{event['Method']} {event['Path']}" for event in events(found["ApiFunction"], "HttpApi")}
    assert routes == {
        "GET /healthz",
        "GET /openapi.json",
        "GET /docs",
        "POST /v1/jobs",
        "GET /v1/jobs/{id}",
        "GET /v1/jobs/{id}/results",
        "GET /v1/jobs/{id}/targets",
        "GET /v1/jobs/{id}/targets/{index}",
        "GET /v1/jobs/{id}/targets/{index}/content",
        "POST /v1/jobs/{id}/cancel",
        "POST /v1/jobs/{id}/pause",
        "POST /v1/jobs/{id}/resume",
        "POST /v1/jobs/{id}/retry",
        "DELETE /v1/jobs/{id}",
        "GET /v1/jobs",
    }
    now = events(found["FetchNowFunction"], "HttpApi")
    assert [f"{event['Method']} {event['Path']}" for event in now] == ["POST /v1/fetch"]
    assert [target(event["Queue"]) for event in events(found["FetchFunction"], "SQS")] == ["FetchQueue"]
    assert [target(event["Queue"]) for event in events(found["AssembleFunction"], "SQS")] == ["AssembleQueue"]
    assert [target(event["Queue"]) for event in events(found["InferenceFunction"], "SQS")] == ["InferenceQueue"]
    assert len(events(found["SweepFunction"], "Schedule")) == 1
    assert [target(event["Queue"]) for event in events(found["NotifyFunction"], "SQS")] == ["NotifyQueue"]
    (rule,) = events(found["ScheduleFunction"], "EventBridgeRule")
    assert (target(rule["EventBusName"]), rule["Pattern"]) == ("EventBus", {"detail-type": ["Sift Batch Requested"]})


def test_what_is_no_job_is_kept_whoever_gave_it_up(template: Template) -> None:
    function = functions(template)["ScheduleFunction"]
    (rule,) = events(function, "EventBridgeRule")
    (schedule,) = resources(template, "AWS::Scheduler::Schedule").values()
    kept = [
        function["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"],
        rule["DeadLetterConfig"]["Arn"],
        schedule["Properties"]["Target"]["DeadLetterConfig"]["Arn"],
    ]
    assert [target(queue) for queue in kept] == ["ScheduleDeadLetterQueue"] * 3


def test_webhooks_that_wait_ring_before_the_queue_can_hide_no_more(template: Template) -> None:
    alarms = [alarm["Properties"] for alarm in resources(template, "AWS::CloudWatch::Alarm").values()]
    (found,) = [alarm for alarm in alarms if alarm["MetricName"] == "ApproximateNumberOfMessagesNotVisible"]
    assert [target(dimension["Value"]) for dimension in found["Dimensions"]] == ["NotifyQueue"]
    assert found["Threshold"] < 120_000


def test_an_event_that_can_not_even_be_a_dead_letter_rings(template: Template) -> None:
    """Lambda says so in this metric alone: its record of an event is larger than the event."""
    alarms = [alarm["Properties"] for alarm in resources(template, "AWS::CloudWatch::Alarm").values()]
    (found,) = [alarm for alarm in alarms if alarm["MetricName"] == "DestinationDeliveryFailures"]
    assert [target(dimension["Value"]) for dimension in found["Dimensions"]] == ["ScheduleFunction"]
    assert (found["Threshold"], found["Statistic"], found["EvaluationPeriods"]) == (0, "Sum", 1)


def test_the_rules_have_something_to_judge(template: Template) -> None:
    for kind in ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::IAM::Role", "AWS::Logs::LogGroup"):
        assert resources(template, kind), kind


def test_what_is_fetched_while_a_caller_waits_has_a_cap_of_its_own(template: Template) -> None:
    reserved = functions(template)["FetchNowFunction"]["ReservedConcurrentExecutions"]
    for reserve, expected in (("true", "7"), ("false", None)):
        chosen = {"FetchNowConcurrency": "7", "FetchConcurrency": "3", "ReserveConcurrency": reserve}
        assert evaluate(template, reserved, chosen) == expected


def test_a_batch_of_responses_fits_the_disk(template: Template) -> None:
    function = functions(template)["InferenceFunction"]
    (mapping,) = events(function, "SQS")
    assert mapping["BatchSize"] * MAX_RESPONSE_BYTES < function["EphemeralStorage"]["Size"] * 1024 * 1024


def test_a_request_ends_before_its_function_does(template: Template) -> None:
    assert functions(template)["InferenceFunction"]["Timeout"] > REQUEST_SECONDS + RESERVE_SECONDS
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert f"One request may take {REQUEST_SECONDS:.0f} seconds" in text


def test_the_gateway_may_be_in_a_network(template: Template) -> None:
    network = functions(template)["InferenceFunction"]["VpcConfig"]
    chosen = {"InferenceSubnetIds": "subnet-1,subnet-2", "InferenceSecurityGroupIds": "sg-1"}
    assert evaluate(template, network, {}) is None
    assert evaluate(template, network, chosen) == {"SubnetIds": "subnet-1,subnet-2", "SecurityGroupIds": "sg-1"}


def test_both_functions_fetch_alike_and_take_whom_the_api_takes(template: Template) -> None:
    jobs, now = (variables(functions(template)[name]) for name in ("FetchFunction", "FetchNowFunction"))
    callers = {name for name in now if name.startswith("JWT_")}
    assert {name: jobs[name] for name in now.keys() - callers} == {name: now[name] for name in now.keys() - callers}
    api = variables(functions(template)["ApiFunction"])
    assert {name: api[name] for name in callers} == {name: now[name] for name in callers} != {}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_handler_is_one_short_file(name: str, template: Template) -> None:
    path, handler = _handler(functions(template)[name])
    source = path.read_text()
    assert len(source.splitlines()) <= HANDLER_LINES
    defined = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert handler in defined
    # A module beside the handler would be found by Lambda or by the tests, not by both.
    assert [other.name for other in path.parent.glob("*.py")] == [path.name]


@pytest.mark.parametrize(("name", "model"), FUNCTIONS.items())
def test_environment_is_what_the_settings_read(name: str, model: str, template: Template) -> None:
    fields = {field.upper() for field in getattr(importlib.import_module("sift.settings"), model).model_fields}
    given = set(variables(functions(template)[name]))
    assert given - READ_BY_POWERTOOLS == fields - READ_BY_POWERTOOLS
    assert given >= READ_BY_POWERTOOLS


def test_linter_is_content() -> None:
    linter = Path(sys.executable).with_name("cfn-lint")
    ran = subprocess.run([linter, ROOT / "template.yaml"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr
