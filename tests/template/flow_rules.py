"""Rules for what moves: queues and their functions, the cap, schedules, the HTTP API's time limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.template.document import Template, evaluate, events, functions, resources, target, variables

HTTP_API_SECONDS = 30  # the longest that API Gateway waits for an integration of an HTTP API
VISIBILITY_FACTOR = 6  # what AWS asks of a queue that Lambda polls
#: Over so many seconds, that would keep what a dead worker had for more than an hour; over the lease is enough where
#: the mapping has the function's own cap, for then nothing is throttled.
LONG_TIMEOUT = 600
#: The parameter that caps each function with a queue, and what it takes for there to be any work.
CAPS = {
    "FetchFunction": "FetchConcurrency", "InferenceFunction": "InferenceConcurrency",
    "NotifyFunction": "NotifyConcurrency",
}  # fmt: skip
WORKING = {"GatewayUrl": "https://gateway.example/v1"}


Properties = dict[str, Any]


def _mappings(template: Template) -> Iterator[tuple[str, Properties, Properties, str, Properties]]:
    """Function id and properties, mapping properties, queue id and properties of every SQS mapping."""
    for name, function in functions(template).items():
        for mapping in events(function, "SQS"):
            queue = target(mapping["Queue"])
            yield name, function, mapping, queue, template["Resources"][queue]["Properties"]


def visibility_outlasts_lease_and_function(template: Template) -> Iterator[str]:
    """Function timeout < lease < visibility, and visibility is at least 6 times a timeout of minutes."""
    for name, function, _, queue, queue_properties in _mappings(template):
        timeout, visibility = function["Timeout"], queue_properties.get("VisibilityTimeout", 30)
        if timeout < LONG_TIMEOUT and visibility < VISIBILITY_FACTOR * timeout:
            yield f"{queue}: visibility {visibility} is under {VISIBILITY_FACTOR} times {timeout} of {name}"
        if "LEASE_SECONDS" not in variables(function):
            continue  # nothing of what it works on is leased
        lease = int(variables(function)["LEASE_SECONDS"])
        if not timeout < lease < visibility:
            yield f"{name}: not timeout {timeout} < lease {lease} < visibility {visibility}"
        for other, settings in functions(template).items():
            told = variables(settings).get("VISIBILITY_SECONDS")
            # The sweeper must not take a message for lost before it had the time to come back by itself.
            if told is not None and int(told) + lease < visibility:
                yield f"{other}: is told a visibility of {told}, {queue} has {visibility}"


def batches_report_partial_failures(template: Template) -> Iterator[str]:
    """One bad message must not bring its batch back."""
    for name, _, mapping, _, _ in _mappings(template):
        if mapping.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name}: its mapping does not report partial failures"


def both_caps_follow_their_parameter(template: Template) -> Iterator[str]:
    """Reservation and MaximumConcurrency are the function's parameter where AWS allows them, and one always holds; a
    function without a parameter has a fixed maximum."""
    for name, function, mapping, _, _ in _mappings(template):
        if name not in CAPS:
            if mapping.get("ScalingConfig", {}).get("MaximumConcurrency", 0) < 2:
                yield f"{name}: nothing holds how many run at once"
            continue
        least = template["Parameters"][CAPS[name]]["MinValue"]
        for cap in ("1", "2", "7", "1000"):
            if int(cap) < least:
                continue
            for reserve in ("true", "false"):
                chosen = {CAPS[name]: cap, "ReserveConcurrency": reserve, **WORKING}
                reserved = evaluate(template, function.get("ReservedConcurrentExecutions"), chosen)
                scaling = evaluate(template, mapping.get("ScalingConfig"), chosen) or {}
                maximum = scaling.get("MaximumConcurrency")
                if reserved != (cap if reserve == "true" else None):
                    yield f"{name}: at {chosen} it reserves {reserved}"
                if maximum != (cap if cap != "1" else None):
                    yield f"{name}: at {chosen} the mapping's maximum is {maximum}"
                if reserved is None and maximum is None and not _refused(template, chosen):
                    yield f"{name}: at {chosen} nothing holds the cap"


def nothing_works_without_a_gateway(template: Template) -> Iterator[str]:
    """What serves the gateway alone costs nothing where there is none: no polling, no alarms, nothing reserved."""
    chosen = {"GatewayUrl": ""}
    for name, function, mapping, queue, _ in _mappings(template):
        if name != "InferenceFunction":
            continue
        if evaluate(template, mapping.get("Enabled", True), chosen):
            yield f"{name}: its mapping polls"
        if evaluate(template, function.get("ReservedConcurrentExecutions"), chosen) is not None:
            yield f"{name}: concurrency is reserved"
        serving = {name, queue, f"{name.removesuffix('Function')}DeadLetterQueue"}
        for alarm, found in resources(template, "AWS::CloudWatch::Alarm").items():
            watched = {target(dimension["Value"]) for dimension in found["Properties"]["Dimensions"]}
            if watched & serving and evaluate(template, {"Condition": found.get("Condition", "Reserve")}, chosen):
                yield f"{alarm}: is paid for"


def _refused(template: Template, parameters: dict[str, str]) -> bool:
    """Whether the template's Rules refuse these parameters."""
    return any(
        evaluate(template, rule.get("RuleCondition", True), parameters)
        and not all(evaluate(template, check["Assert"], parameters) for check in rule["Assertions"])
        for rule in template.get("Rules", {}).values()
    )


def loops_are_allowed(template: Template) -> Iterator[str]:
    """A function that sends to the queue it is called from must say so, or Lambda stops it after 16 hops."""
    for name, function, _, queue, _ in _mappings(template):
        role = template["Resources"].get(target(function.get("Role")), {"Properties": {}})["Properties"]
        sends = any(
            "sqs:SendMessage" in statement["Action"] and target(statement["Resource"]) == queue
            for policy in role.get("Policies", [])
            for statement in policy["PolicyDocument"]["Statement"]
        )
        if sends and function.get("RecursiveLoop") != "Allow":
            yield f"{name}: sends to {queue}, which calls it, without RecursiveLoop: Allow"


def queues_have_watched_dead_letter_queues(template: Template) -> Iterator[str]:
    """What can't be worked off ends in a queue that keeps it longer and raises an alarm."""
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    watched = {
        target(dimension["Value"])
        for alarm in alarms
        if alarm["Properties"]["MetricName"] == "ApproximateNumberOfMessagesVisible"
        and alarm["Properties"]["Threshold"] == 0
        for dimension in alarm["Properties"]["Dimensions"]
    }
    for _, _, _, queue, properties in _mappings(template):
        dead = target(properties.get("RedrivePolicy", {}).get("deadLetterTargetArn"))
        if dead not in resources(template, "AWS::SQS::Queue"):
            yield f"{queue}: no dead-letter queue"
            continue
        if dead not in watched:
            yield f"{dead}: no alarm when it is not empty"
        kept = template["Resources"][dead]["Properties"].get("MessageRetentionPeriod", 0)
        if kept <= properties.get("MessageRetentionPeriod", 345600):
            yield f"{dead}: keeps messages no longer than {queue}, and their age runs on"


def schedules_run_alone(template: Template) -> Iterator[str]:
    """A scheduled function runs once at a time, is not repeated by Lambda, and has an alarm for errors."""
    alarms = [alarm["Properties"] for alarm in resources(template, "AWS::CloudWatch::Alarm").values()]
    for name, function in functions(template).items():
        if not events(function, "Schedule"):
            continue
        if [event["Schedule"] for event in events(function, "Schedule")] != ["rate(1 minute)"]:
            yield f"{name}: not every minute"
        if function["Timeout"] >= 60:
            yield f"{name}: may still run when the next one starts"
        reserved = function.get("ReservedConcurrentExecutions")
        if evaluate(template, reserved, {"ReserveConcurrency": "true"}) != 1:
            yield f"{name}: two may run at once"
        if function.get("EventInvokeConfig", {}).get("MaximumRetryAttempts") != 0:
            yield f"{name}: Lambda would repeat a failed run"
        if not any(
            alarm["MetricName"] == "Errors" and [target(d["Value"]) for d in alarm["Dimensions"]] == [name]
            for alarm in alarms
        ):
            yield f"{name}: no alarm on its errors"


def http_functions_answer_in_time(template: Template) -> Iterator[str]:
    """A function behind the HTTP API gives up before the API does, so that callers see its own error."""
    for name, function in functions(template).items():
        if events(function, "HttpApi") and function["Timeout"] >= HTTP_API_SECONDS:
            yield f"{name}: timeout {function['Timeout']}, but the API waits {HTTP_API_SECONDS} s"


RULES = (
    visibility_outlasts_lease_and_function,
    batches_report_partial_failures,
    both_caps_follow_their_parameter,
    nothing_works_without_a_gateway,
    loops_are_allowed,
    queues_have_watched_dead_letter_queues,
    schedules_run_alone,
    http_functions_answer_in_time,
)
