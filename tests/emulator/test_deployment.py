"""The template deployed: everything is there, and the end-to-end suite passes."""

from __future__ import annotations

import re
import time

import pytest

from sift_client.cli import main
from sift_client.site import Site
from tests.e2e.running import make_keys, run_suite
from tests.emulator.conftest import STACK
from tests.emulator.emulator import CREDENTIALS, REGION, Emulator
from tests.emulator.mending import ASYNCHRONOUS, Deployment, mapping_numbers, queue_events, queue_name
from tests.template.document import resources

pytestmark = [pytest.mark.needs_emulator, pytest.mark.timeout(1800)]

PATIENCE_S = 600.0


def _outputs(emulator: Emulator) -> dict[str, str]:
    (stack,) = emulator.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    return {row["OutputKey"]: row["OutputValue"] for row in stack["Outputs"]}


def test_every_resource_is_there(deployment: Deployment) -> None:
    layers = tuple(resources(deployment.template, "AWS::Serverless::LayerVersion"))
    # The id of a layer gets a hash at its end, so that each version is a resource of its own.
    made = {next(filter(name.startswith, layers), name) for name in deployment.physical}
    conditions = deployment.template["Conditions"]
    wanted = {
        name
        for name, resource in deployment.template["Resources"].items()
        if "Condition" not in resource or deployment.value(conditions[resource["Condition"]])
    }
    assert wanted <= made


def test_every_route_leads_to_its_function(deployment: Deployment, emulator: Emulator) -> None:
    gateway = emulator.client("apigatewayv2")
    (api,) = gateway.get_apis()["Items"]
    behind = {
        f"integrations/{row['IntegrationId']}": row["IntegrationUri"].split(":")[-1]
        for row in gateway.get_integrations(ApiId=api["ApiId"])["Items"]
    }
    routes = {row["RouteKey"]: behind[row["Target"]] for row in gateway.get_routes(ApiId=api["ApiId"])["Items"]}
    assert routes == deployment.routes()
    assert len(routes) > 10


def test_every_function_has_its_settings(deployment: Deployment, emulator: Emulator) -> None:
    lambda_ = emulator.client("lambda")
    made = {row["FunctionName"]: row for row in lambda_.list_functions()["Functions"]}
    assert set(made) == set(deployment.functions())
    for name, wanted in deployment.functions().items():
        found = made[name]
        assert (found["Timeout"], found["MemorySize"]) == (wanted["Timeout"], wanted["MemorySize"])
        assert set(found["Environment"]["Variables"]) == set(wanted["Environment"]["Variables"])
        assert len(found["Layers"]) == len(wanted["Layers"])
        reserved = lambda_.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")
        expected = wanted.get("ReservedConcurrentExecutions")
        assert reserved == (None if expected is None else int(expected)), name
        loop = lambda_.get_function_recursion_config(FunctionName=name)["RecursiveLoop"]
        assert loop == wanted.get("RecursiveLoop", "Terminate"), name
        if wanted.get("EventInvokeConfig"):
            config = lambda_.get_function_event_invoke_config(FunctionName=name)
            for key in ASYNCHRONOUS:
                if key in wanted["EventInvokeConfig"]:
                    assert config[key] == int(wanted["EventInvokeConfig"][key]), (name, key)


def test_every_queue_is_worked_on(deployment: Deployment, emulator: Emulator) -> None:
    mappings = emulator.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    found = {(row["FunctionArn"].split(":")[-1], row["EventSourceArn"].split(":")[-1]): row for row in mappings}
    wanted = {(name, queue_name(deployment, event)): event for name, event in queue_events(deployment)}
    assert set(found) == set(wanted)
    for pair, event in wanted.items():
        assert mapping_numbers(event).items() <= found[pair].items(), pair
        assert found[pair]["State"] == "Enabled"


def test_the_tables_forget_what_has_expired(deployment: Deployment, emulator: Emulator) -> None:
    for name, table in deployment.properties("AWS::DynamoDB::Table").items():
        found = emulator.client("dynamodb").describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        wanted = table["TimeToLiveSpecification"]
        assert (found["TimeToLiveStatus"], found["AttributeName"]) == ("ENABLED", wanted["AttributeName"])


def test_every_schedule_ticks_for_a_function(deployment: Deployment, emulator: Emulator) -> None:
    scheduler = emulator.client("events")
    rules = scheduler.list_rules()["Rules"]
    aims = {
        (rule.get("ScheduleExpression"), target["Arn"].split(":")[-1])
        for rule in rules
        for target in scheduler.list_targets_by_rule(Rule=rule["Name"])["Targets"]
    }
    wanted = {
        (event["Properties"]["Schedule"], name)
        for name, function in deployment.functions().items()
        for event in function.get("Events", {}).values()
        if event["Type"] == "Schedule"
    }
    assert wanted <= aims
    assert wanted


def test_every_alarm_is_there(deployment: Deployment, emulator: Emulator) -> None:
    pages = emulator.client("cloudwatch").get_paginator("describe_alarms").paginate()
    made = {row["AlarmName"] for page in pages for row in page["MetricAlarms"]}
    wanted = {deployment.physical[name] for name in resources(deployment.template, "AWS::CloudWatch::Alarm")}
    assert made == wanted


def test_the_deployed_stack_passes_the_end_to_end_suite(
    deployment: Deployment, emulator: Emulator, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = _outputs(emulator)
    api = re.fullmatch(r"http://([a-z0-9]+)\.execute-api\..*", outputs["Url"])
    assert api is not None
    ran = run_suite({
        # The name in the output does not resolve on every machine; this is the same address as a path.
        "SIFT_URL": f"{emulator.url}/_aws/execute-api/{api[1]}/$default",
        "SIFT_SITE": site.url,
            "SIFT_MODEL": "small",
        **make_keys(emulator.client("dynamodb"), outputs["TableName"]),
    })  # fmt: skip
    with capsys.disabled():
        print("\n" + ran.stdout)
    assert ran.returncode == 0, ran.stderr


def test_the_sweeper_removes_what_was_deleted(deployment: Deployment, emulator: Emulator) -> None:
    """Its schedule starts it each minute; the suite above has deleted every job that it made."""
    outputs = _outputs(emulator)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        items = emulator.client("dynamodb").scan(TableName=outputs["TableName"])["Items"]
        kept = emulator.client("s3").list_objects_v2(Bucket=outputs["BucketName"], Prefix="jobs/")["KeyCount"]
        left = [item["pk"]["S"] for item in items if item["pk"]["S"].startswith("JOB#")]
        if not left and not kept:
            return
        assert time.monotonic() < deadline, (left, kept)
        time.sleep(2)


def test_it_is_taken_down_in_one_command(
    deployment: Deployment, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**CREDENTIALS, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": emulator.url}.items():
        monkeypatch.setenv(name, value)
    outputs = _outputs(emulator)
    assert main(["teardown", "--stack", STACK, "--yes"]) == 0
    assert emulator.client("lambda").list_functions()["Functions"] == []
    assert outputs["TableName"] not in emulator.client("dynamodb").list_tables()["TableNames"]
    assert outputs["BucketName"] not in [row["Name"] for row in emulator.client("s3").list_buckets()["Buckets"]]
