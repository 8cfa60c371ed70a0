"""What the emulator's CloudFormation leaves out without a word, set by API calls after a deployment.

The template stays as AWS wants it. Each gap is one function here, and is looked at again in test_deployment.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.template.document import Template, evaluate, events, functions, resources, target


@dataclass(frozen=True)
class Deployment:
    """A stack that was deployed: its template, the parameters given, and physical ids by logical id."""

    template: Template
    parameters: dict[str, str]
    physical: dict[str, str]

    def value(self, part: Any) -> Any:
        """A part of the template with parameters and conditions worked out."""
        return evaluate(self.template, part, self.parameters)

    def functions(self) -> dict[str, Any]:
        """Properties of each function by the name that it has now."""
        return {self.physical[name]: self.value(found) for name, found in functions(self.template).items()}

    def routes(self) -> dict[str, str]:
        """Name of the function behind each route of the HTTP API."""
        return {
            f"{event['Method']} {event['Path']}": name
            for name, function in self.functions().items()
            for event in events(function, "HttpApi")
        }

    def properties(self, kind: str) -> dict[str, Any]:
        """Properties of the resources of a type by physical id."""
        return {
            self.physical[name]: self.value(found.get("Properties", {}))
            for name, found in resources(self.template, kind).items()
        }


def mend(deployment: Deployment, clients: Any) -> None:
    """Close every gap; `clients(service)` gives a client of the emulator."""
    make_routes(deployment, clients("apigatewayv2"), clients("lambda"))
    for name, function in deployment.functions().items():
        mend_function(name, function, clients("lambda"))
    mend_mappings(deployment, clients("lambda"))
    for name, table in deployment.properties("AWS::DynamoDB::Table").items():
        if "TimeToLiveSpecification" in table:
            clients("dynamodb").update_time_to_live(
                TableName=name, TimeToLiveSpecification=table["TimeToLiveSpecification"]
            )


def make_routes(deployment: Deployment, gateway: Any, lambda_: Any) -> None:
    """SAM writes routes as an OpenAPI body of the API, which is dropped."""
    (api,) = (deployment.physical[name] for name in resources(deployment.template, "AWS::Serverless::HttpApi"))
    integrations = {}
    for name in set(deployment.routes().values()):
        made = gateway.create_integration(
            ApiId=api,
            IntegrationType="AWS_PROXY",
            IntegrationUri=lambda_.get_function(FunctionName=name)["Configuration"]["FunctionArn"],
            PayloadFormatVersion="2.0",
        )
        integrations[name] = made["IntegrationId"]
    for route, name in deployment.routes().items():
        gateway.create_route(ApiId=api, RouteKey=route, Target=f"integrations/{integrations[name]}")


def mend_function(name: str, function: dict[str, Any], lambda_: Any) -> None:
    """Reservation, what becomes of asynchronous events, and whether loops are cut."""
    reserved = function.get("ReservedConcurrentExecutions")
    if reserved is not None:
        lambda_.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=int(reserved))
    if "RecursiveLoop" in function:
        lambda_.put_function_recursion_config(FunctionName=name, RecursiveLoop=function["RecursiveLoop"])
    asynchronous = function.get("EventInvokeConfig")
    if asynchronous:
        numbers = {key: int(asynchronous[key]) for key in ASYNCHRONOUS if key in asynchronous}
        lambda_.put_function_event_invoke_config(FunctionName=name, **numbers)


ASYNCHRONOUS = ("MaximumRetryAttempts", "MaximumEventAgeInSeconds")


def mend_mappings(deployment: Deployment, lambda_: Any) -> None:
    """Numbers of a queue's mapping that come from parameters stay texts, and its poller fails on them."""
    for name, queue in queue_events(deployment):
        for mapping in lambda_.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]:
            if queue_name(deployment, queue) == mapping["EventSourceArn"].split(":")[-1]:
                lambda_.update_event_source_mapping(UUID=mapping["UUID"], **mapping_numbers(queue))


def queue_events(deployment: Deployment) -> list[tuple[str, dict[str, Any]]]:
    """Each queue that a function works on: the function's name and the event's properties."""
    found = deployment.functions().items()
    return [(name, event) for name, function in found for event in events(function, "SQS")]


def queue_name(deployment: Deployment, event: dict[str, Any]) -> str:
    """The queue of an event; its physical id is its address."""
    return deployment.physical[target(event["Queue"])].rsplit("/", 1)[-1]


def mapping_numbers(event: dict[str, Any]) -> dict[str, Any]:
    """The settings of a mapping that are numbers, as such."""
    numbers: dict[str, Any] = {
        key: int(event[key]) for key in ("BatchSize", "MaximumBatchingWindowInSeconds") if key in event
    }
    if event.get("ScalingConfig"):
        numbers["ScalingConfig"] = {"MaximumConcurrency": int(event["ScalingConfig"]["MaximumConcurrency"])}
    return numbers
