"""From a template to a blueprint: which resources there are and what each is made with."""

from __future__ import annotations

import json
from typing import Any

from sift_client.local.blueprint import Blueprint, QueueSpec, RuleSpec, ScheduleSpec, TableSpec
from sift_client.local.document import Document
from sift_client.local.errors import TemplateError
from sift_client.local.function_plan import read_function
from sift_client.local.naming import Naming
from sift_client.local.properties import Properties
from sift_client.local.timetable import read_expression

# Read elsewhere: layers by the functions that use them, API settings below.
_NOTHING_TO_MAKE = {"AWS::Serverless::LayerVersion"}
# Nothing here checks permissions, raises alarms or keeps logs beyond a file.
_INERT_TYPES = {
    "AWS::IAM::Role", "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::Lambda::Permission",
    "AWS::Logs::LogGroup", "AWS::Logs::MetricFilter", "AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard",
    "AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy", "AWS::Events::EventBusPolicy",
}  # fmt: skip
_RESOURCE_KEYS = {
    "Type",
    "Properties",
    "Condition",
    "DependsOn",
    "DeletionPolicy",
    "UpdateReplacePolicy",
    "Metadata",
}


def make_blueprint(document: Document, naming: Naming) -> Blueprint:
    """Reads every resource of the template.

    Raises TemplateError where something would run wrongly; what merely has no counterpart here is listed in the
    blueprint's `inert` and `unknown`.
    """
    _check_rules(document, naming)
    blueprint = Blueprint()
    resources = document.section("Resources")
    # Functions last: their events refer to queues and buses.
    for logical_id, resource in sorted(
        resources.items(), key=lambda item: item[1].get("Type") == "AWS::Serverless::Function"
    ):
        if not naming.exists(resource):
            continue
        blueprint.unknown.extend(f"{logical_id}: {key}" for key in sorted(set(resource) - _RESOURCE_KEYS))
        kind = resource.get("Type")
        raw = resource.get("Properties") or {}
        if kind == "AWS::Serverless::Function":
            read_function(logical_id, raw, document, naming, blueprint)
        elif kind in _READERS:
            properties = Properties(logical_id, raw, naming.resolver, blueprint)
            _READERS[kind](logical_id, properties, naming, blueprint)
            properties.close()
        elif kind in _INERT_TYPES:
            blueprint.inert.append(f"{logical_id} ({kind})")
        elif kind not in _NOTHING_TO_MAKE:
            blueprint.unknown.append(f"{logical_id} ({kind})")
    return blueprint


def _check_rules(document: Document, naming: Naming) -> None:
    for name, rule in document.section("Rules").items():
        if "RuleCondition" in rule and not naming.resolver.resolve(rule["RuleCondition"]):
            continue
        for assertion in rule["Assertions"]:
            if not naming.resolver.resolve(assertion["Assert"]):
                raise TemplateError(f"rule {name}: {assertion.get('AssertDescription', 'an assertion does not hold')}")


def _read_table(logical_id: str, properties: Properties, naming: Naming, blueprint: Blueprint) -> None:
    name = naming.physical(logical_id)
    request: dict[str, Any] = {"TableName": name}
    for key in ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes",
                "ProvisionedThroughput", "StreamSpecification", "BillingMode"):  # fmt: skip
        value = properties.take(key)
        if value is not None:
            request[key] = value
    stream = request.get("StreamSpecification")
    if stream:
        stream["StreamEnabled"] = True
    ttl = properties.block("TimeToLiveSpecification")
    attribute = ttl.take("AttributeName")
    enabled = ttl.flag("Enabled", True)
    ttl.close()
    recovery = properties.block("PointInTimeRecoverySpecification")
    recovers = recovery.flag("PointInTimeRecoveryEnabled", False)
    recovery.inert("RecoveryPeriodInDays")
    recovery.close()
    properties.take("TableName")
    properties.inert("SSESpecification", "Tags", "DeletionProtectionEnabled", "TableClass", "WarmThroughput",
                     "OnDemandThroughput", "ContributorInsightsSpecification")  # fmt: skip
    blueprint.tables[logical_id] = TableSpec(name, request, attribute if enabled else None, recovers)


def _read_queue(logical_id: str, properties: Properties, naming: Naming, blueprint: Blueprint) -> None:
    attributes = {}
    for key in ("DelaySeconds", "MaximumMessageSize", "MessageRetentionPeriod", "VisibilityTimeout",
                "FifoQueue", "ContentBasedDeduplication"):  # fmt: skip
        value = properties.take(key)
        if value is not None:
            attributes[key] = str(value).lower() if isinstance(value, bool) else str(value)
    redrive = properties.take("RedrivePolicy")
    if isinstance(redrive, dict):
        # A parameter arrives as text, which SQS takes for a number too.
        redrive = {**redrive, "maxReceiveCount": int(redrive["maxReceiveCount"])}
    if redrive is not None:
        attributes["RedrivePolicy"] = redrive if isinstance(redrive, str) else json.dumps(redrive)
    properties.take("QueueName")
    properties.inert("SqsManagedSseEnabled", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "Tags",
                     "RedriveAllowPolicy", "ReceiveMessageWaitTimeSeconds")  # fmt: skip
    blueprint.queues[logical_id] = QueueSpec(naming.physical(logical_id), attributes)


def _read_bucket(logical_id: str, properties: Properties, naming: Naming, blueprint: Blueprint) -> None:
    properties.take("BucketName")
    properties.inert("BucketEncryption", "OwnershipControls", "PublicAccessBlockConfiguration", "Tags",
                     "LifecycleConfiguration", "AccessControl", "LoggingConfiguration")  # fmt: skip
    blueprint.buckets[logical_id] = naming.physical(logical_id)


def _read_bus(logical_id: str, properties: Properties, naming: Naming, blueprint: Blueprint) -> None:
    properties.take("Name")
    properties.inert("Tags", "Description", "LogConfig", "KmsKeyIdentifier")
    blueprint.buses[logical_id] = naming.physical(logical_id)


def _read_rule(logical_id: str, properties: Properties, naming: Naming, blueprint: Blueprint) -> None:
    targets = []
    for target in properties.need("Targets"):
        extra = set(target) - {"Arn", "Id", "Input", "RetryPolicy", "DeadLetterConfig"}
        if extra:
            raise TemplateError(f"{logical_id}: target settings {sorted(extra)} are not supported by the local stack")
        for setting in sorted({"RetryPolicy", "DeadLetterConfig"} & set(target)):
            blueprint.inert.append(f"{logical_id}.Targets: {setting}")
        targets.append((target["Arn"], json.loads(target["Input"]) if "Input" in target else None))
    bus = properties.take("EventBusName", "default")
    pattern = properties.need("EventPattern")
    state = properties.take("State", "ENABLED")
    properties.take("Name")
    properties.inert("Description", "RoleArn", "Tags")
    if state == "ENABLED":
        blueprint.rules.append(RuleSpec(logical_id, str(bus).rsplit("/", 1)[-1], pattern, tuple(targets)))


def _read_schedule(logical_id: str, properties: Properties, naming: Naming, blueprint: Blueprint) -> None:
    """A schedule of EventBridge Scheduler, whose target is a function."""
    expression = str(properties.need("ScheduleExpression"))
    read_expression(expression)
    target = properties.block("Target")
    arn = str(target.need("Arn"))
    text = target.take("Input")
    target.inert("RoleArn", "RetryPolicy", "DeadLetterConfig")
    target.close()
    if properties.take("ScheduleExpressionTimezone", "UTC") != "UTC":
        raise TemplateError(f"{logical_id}: only UTC is supported by the local stack")
    state = properties.take("State", "ENABLED")
    properties.take("Name")
    properties.inert("Description", "FlexibleTimeWindow", "GroupName", "KmsKeyArn")
    function = naming.function_of(arn)
    if function is None:
        raise TemplateError(f"{logical_id}: target {arn} is no function of the stack")
    if state == "ENABLED":
        own = naming.schedule_arn(naming.physical(logical_id))
        blueprint.schedules.append(ScheduleSpec(logical_id, own, function, expression, None, text))


def _read_api(logical_id: str, properties: Properties, naming: Naming, blueprint: Blueprint) -> None:
    stage = properties.take("StageName", "$default")
    if stage != "$default":
        raise TemplateError(f"{logical_id}: only the $default stage is supported by the local stack")
    properties.take("Name")
    properties.inert("Description", "Tags", "AccessLogSettings", "FailOnWarnings", "PropagateTags",
                     "DisableExecuteApiEndpoint")  # fmt: skip


_READERS = {
    "AWS::DynamoDB::Table": _read_table,
    "AWS::SQS::Queue": _read_queue,
    "AWS::S3::Bucket": _read_bucket,
    "AWS::Events::EventBus": _read_bus,
    "AWS::Events::Rule": _read_rule,
    "AWS::Scheduler::Schedule": _read_schedule,
    "AWS::Serverless::HttpApi": _read_api,
}
