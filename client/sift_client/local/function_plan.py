"""Functions of a template: settings after Globals, layers, environment and the events that call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sift_client.local.blueprint import (
    Blueprint,
    FunctionSpec,
    MappingSpec,
    RouteSpec,
    RuleSpec,
    ScheduleSpec,
)
from sift_client.local.document import Document
from sift_client.local.errors import TemplateError
from sift_client.local.naming import Naming
from sift_client.local.properties import Properties
from sift_client.local.timetable import read_expression

ENVIRONMENT_BYTES = 4096  # Lambda quotas: all environment variables of a function together
# Lambda refuses functions that set these themselves.
RESERVED_VARIABLES = {
    "_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME", "AWS_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_LAMBDA_RUNTIME_API",
    "LAMBDA_TASK_ROOT", "LAMBDA_RUNTIME_DIR",
}  # fmt: skip


def read_function(
    logical_id: str, raw: dict[str, Any], document: Document, naming: Naming, blueprint: Blueprint
) -> None:
    """Adds a function and its routes, mappings, schedules and rules to the blueprint."""
    merged = _merge((document.section("Globals").get("Function")) or {}, raw)
    properties = Properties(logical_id, merged, naming.resolver, blueprint)
    runtime = str(properties.need("Runtime"))
    if not runtime.startswith("python3."):
        raise TemplateError(f"{logical_id}: runtime {runtime} is not Python")
    code = document.root / properties.need("CodeUri")
    if not code.is_dir():
        raise TemplateError(f"{logical_id}: CodeUri {code} is no folder")
    environment = properties.block("Environment")
    variables = {name: _as_text(value) for name, value in environment.take("Variables", {}).items()}
    environment.close()
    _check_variables(logical_id, variables)
    retry = properties.block("EventInvokeConfig")
    # 0 would be no limit at all; "at least 1" is what a schedule needs to be delivered.
    retries = retry.number("MaximumRetryAttempts", 2, 0, 2)
    max_age = retry.number("MaximumEventAgeInSeconds", 21600, 60, 21600)
    on_failure = _read_destination(retry)
    retry.close()
    events = properties.take("Events", {})
    layers = tuple(
        folder for arn in properties.take("Layers", []) for folder in _find_layer(logical_id, arn, document, naming)
    )
    timeout = properties.number("Timeout", 3, 1, 900)
    memory = properties.number("MemorySize", 128, 128, 10240)
    reserved = properties.number("ReservedConcurrentExecutions", None, 0, 1000)
    assert timeout is not None
    assert memory is not None
    assert retries is not None
    assert max_age is not None
    blueprint.functions[logical_id] = FunctionSpec(
        logical_id, naming.physical(logical_id), naming.arn(logical_id), str(properties.need("Handler")),
        code.resolve(), layers, variables, timeout, memory, reserved, retries, max_age,
        on_failure,
    )  # fmt: skip
    properties.take("FunctionName")
    properties.inert("Architectures", "Role", "Policies", "PermissionsBoundary", "Tracing", "LoggingConfig", "Tags",
                     "Description", "RecursiveLoop", "EphemeralStorage", "PropagateTags", "AutoPublishAlias",
                     "RuntimeManagementConfig", "SnapStart", "VpcConfig")  # fmt: skip
    properties.close()
    for name, event in events.items():
        _read_event(logical_id, name, event, naming, blueprint)


def _read_event(logical_id: str, name: str, event: dict[str, Any], naming: Naming, blueprint: Blueprint) -> None:
    kind = event.get("Type")
    properties = Properties(f"{logical_id}.{name}", event.get("Properties"), naming.resolver, blueprint)
    label = f"{naming.stack}-{logical_id}{name}"
    if kind == "HttpApi":
        timeout = properties.number("TimeoutInMillis", None, 50, 30000)
        version = properties.take("PayloadFormatVersion", "2.0")
        if str(version) != "2.0":
            raise TemplateError(f"{properties.where}: only payload format 2.0 is supported by the local stack")
        route = RouteSpec(
            str(properties.take("Method", "ANY")).upper(), str(properties.take("Path", "$default")), logical_id,
            None if timeout is None else timeout / 1000,
        )  # fmt: skip
        properties.take("ApiId")
        blueprint.routes.append(route)
    elif kind == "SQS":
        blueprint.mappings.extend(_read_mapping(label, logical_id, properties))
    elif kind in ("Schedule", "ScheduleV2"):
        expression = str(properties.need("Schedule" if kind == "Schedule" else "ScheduleExpression"))
        read_expression(expression)
        payload, text = (_read_input(properties), None) if kind == "Schedule" else (None, properties.take("Input"))
        if _is_enabled(properties):
            arn = naming.schedule_arn(label) if kind == "ScheduleV2" else naming.rule_arn(label)
            blueprint.schedules.append(ScheduleSpec(label, arn, logical_id, expression, payload, text))
        properties.take("Name")
        properties.inert("Description", "RetryPolicy", "RoleArn", "FlexibleTimeWindow", "DeadLetterConfig")
    elif kind in ("EventBridgeRule", "CloudWatchEvent"):
        bus = str(properties.take("EventBusName", "default")).rsplit("/", 1)[-1]
        target = (naming.arn(logical_id), _read_input(properties))
        rule = RuleSpec(label, bus, properties.need("Pattern"), (target,))
        if _is_enabled(properties):
            blueprint.rules.append(rule)
        properties.take("RuleName")
        properties.inert("RetryPolicy", "DeadLetterConfig")
    else:
        raise TemplateError(f"{properties.where}: events of type {kind} are not supported by the local stack")
    properties.close()


def _read_destination(retry: Properties) -> str | None:
    """The queue for asynchronous events that failed for good."""
    destinations = retry.block("DestinationConfig")
    failure = destinations.block("OnFailure")
    kind, arn = failure.take("Type", "SQS"), failure.take("Destination")
    if kind != "SQS" or (arn is not None and not str(arn).startswith("arn:aws:sqs:")):
        raise TemplateError(f"{failure.where}: only queues are destinations in the local stack")
    failure.close()
    destinations.inert("OnSuccess")
    destinations.close()
    return None if arn is None else str(arn)


def _read_mapping(label: str, logical_id: str, properties: Properties) -> list[MappingSpec]:
    window = properties.number("MaximumBatchingWindowInSeconds", 0, 0, 300)
    size = properties.number("BatchSize", 10, 1, 10000)
    assert size is not None
    assert window is not None
    if size > 10 and window < 1:
        raise TemplateError(f"{properties.where}: a BatchSize over 10 needs a batching window")
    scaling = properties.block("ScalingConfig")
    maximum = scaling.number("MaximumConcurrency", None, 2, 1000)
    scaling.close()
    types = properties.take("FunctionResponseTypes", [])
    if set(types) - {"ReportBatchItemFailures"}:
        raise TemplateError(f"{properties.where}: unknown FunctionResponseTypes {types}")
    queue = str(properties.need("Queue"))
    if not queue.startswith("arn:"):
        raise TemplateError(f"{properties.where}: Queue must be an ARN, not {queue}")
    spec = MappingSpec(label, logical_id, queue, size, float(window), maximum, bool(types))
    return [spec] if _is_enabled(properties) else []


def _is_enabled(properties: Properties) -> bool:
    enabled = properties.flag("Enabled", True)
    return enabled and properties.take("State", "ENABLED") == "ENABLED"


def _read_input(properties: Properties) -> Any:
    text = properties.take("Input")
    return json.loads(text) if isinstance(text, str) else text


def _find_layer(logical_id: str, arn: str, document: Document, naming: Naming) -> list[Path]:
    for layer, resource in document.section("Resources").items():
        if resource.get("Type") == "AWS::Serverless::LayerVersion" and naming.arn(layer) == arn:
            content = document.root / str(naming.resolver.resolve(resource["Properties"]["ContentUri"]))
            if not content.is_dir():
                raise TemplateError(f"{layer}: ContentUri {content} is no folder")
            # A layer of nothing but requirements has no source: its packages come from this interpreter.
            return [folder.resolve() for folder in (content / "python", content) if _holds_python(folder)]
    raise TemplateError(f"{logical_id}: layer {arn} is not in the template")


def _holds_python(folder: Path) -> bool:
    return any(folder.glob("*.py")) or any(folder.glob("*/__init__.py"))


def _check_variables(logical_id: str, variables: dict[str, str]) -> None:
    reserved = RESERVED_VARIABLES & set(variables)
    if reserved:
        raise TemplateError(f"{logical_id}: Lambda reserves the environment variables {sorted(reserved)}")
    size = sum(len(name.encode()) + len(value.encode()) for name, value in variables.items())
    if size > ENVIRONMENT_BYTES:
        raise TemplateError(f"{logical_id}: environment variables of {size} bytes; Lambda takes {ENVIRONMENT_BYTES}")


def _merge(common: Any, own: Any) -> Any:
    """SAM's rule for Globals: mappings merge, lists add up, everything else is overridden."""
    if isinstance(common, dict) and isinstance(own, dict):
        return {key: _merge(common[key], own[key]) if key in common and key in own else own.get(key, common.get(key))
                for key in [*common, *(key for key in own if key not in common)]}  # fmt: skip
    if isinstance(common, list) and isinstance(own, list):
        return [*common, *own]
    return own


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
