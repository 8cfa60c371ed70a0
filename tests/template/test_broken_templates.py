"""Each house rule speaks up on a template that breaks it: a rule that cannot fail guards nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.template import account_rules as account
from tests.template import flow_rules as flow
from tests.template.document import Template

Rule = Callable[[Template], Iterator[str]]

ABSENT = object()
SHORTHANDS = {
    "Fetch": "FetchFunction.Properties",
    "Mapping": "FetchFunction.Properties.Events.Queue.Properties",
    "Inference": "InferenceFunction.Properties",
    "Asking": "InferenceFunction.Properties.Events.Queue.Properties",
    "Sweep": "SweepFunction.Properties",
    "Api": "ApiFunction.Properties",
    "Queue": "FetchQueue.Properties",
    "Table": "JobsTable.Properties",
    "Bucket": "ContentBucket.Properties",
    "Statements": "ApiRole.Properties.Policies.0.PolicyDocument.Statement",
}

# For each rule: a path (into Resources, or from the top with a leading "/"; its first step may be a
# shorthand), the value put there, and words of the complaint.
BREAKS: dict[Rule, list[tuple[str, Any, str]]] = {
    flow.visibility_outlasts_lease_and_function: [
        ("Queue.VisibilityTimeout", 539, "under 6"),
        ("Queue.VisibilityTimeout", 900, "is told"),
        ("Fetch.Timeout", 100, "not timeout 100"),
        ("Fetch.Environment.Variables.LEASE_SECONDS", "540", "lease 540"),
        ("Inference.Environment.Variables.LEASE_SECONDS", "900", "lease 900"),
        ("InferenceQueue.Properties.VisibilityTimeout", 910, "visibility 910"),
        ("InferenceQueue.Properties.VisibilityTimeout", 1500, "is told"),
        ("AssembleQueue.Properties.VisibilityTimeout", 719, "under 6"),
    ],
    flow.batches_report_partial_failures: [("Mapping.FunctionResponseTypes", ABSENT, "partial")],
    flow.both_caps_follow_their_parameter: [
        ("Fetch.ReservedConcurrentExecutions", 20, "reserves 20"),
        ("Mapping.ScalingConfig", ABSENT, "maximum is None"),
        ("Mapping.ScalingConfig", {"MaximumConcurrency": {"Ref": "FetchConcurrency"}}, "maximum is 1"),
        ("/Rules", {}, "nothing holds the cap"),
        ("Inference.ReservedConcurrentExecutions", {"Ref": "FetchConcurrency"}, "reserves 20"),
        ("Asking.ScalingConfig", ABSENT, "InferenceFunction: at"),
        ("/Rules.InferenceConcurrencyHolds", ABSENT, "InferenceFunction: at"),
        ("AssembleFunction.Properties.Events.Queue.Properties.ScalingConfig", ABSENT, "nothing holds how many"),
    ],
    flow.nothing_works_without_a_gateway: [
        ("Asking.Enabled", ABSENT, "polls"),
        ("Inference.ReservedConcurrentExecutions", {"Ref": "InferenceConcurrency"}, "reserved"),
        ("InferenceQueueAgeAlarm.Condition", ABSENT, "InferenceQueueAgeAlarm: is paid for"),
        ("InferenceDeadLetterAlarm.Condition", ABSENT, "InferenceDeadLetterAlarm: is paid for"),
    ],
    flow.loops_are_allowed: [
        ("Fetch.RecursiveLoop", "Terminate", "RecursiveLoop"),
        ("Inference.RecursiveLoop", ABSENT, "InferenceFunction: sends"),
        ("AssembleFunction.Properties.RecursiveLoop", ABSENT, "AssembleFunction"),
    ],
    flow.queues_have_watched_dead_letter_queues: [
        ("Queue.RedrivePolicy", ABSENT, "no dead"),
        ("FetchDeadLetterAlarm", ABSENT, "no alarm"),
        ("FetchDeadLetterQueue.Properties.MessageRetentionPeriod", 345600, "no longer"),
    ],
    flow.schedules_run_alone: [
        ("Sweep.Timeout", 60, "still run"),
        ("Sweep.ReservedConcurrentExecutions", 2, "at once"),
        ("Sweep.EventInvokeConfig", ABSENT, "repeat"),
        ("Sweep.Events.EveryMinute.Properties.Schedule", "rate(2 minutes)", "every minute"),
        ("SweepErrorsAlarm", ABSENT, "no alarm"),
    ],
    flow.http_functions_answer_in_time: [("Api.Timeout", 30, "timeout 30")],
    account.permissions_name_what_they_allow: [
        ("Sweep.Role", ABSENT, "SAM would make"),
        ("Api.Policies", [{"S3CrudPolicy": {"BucketName": {"Ref": "ContentBucket"}}}], "SAM would make"),
        ("ApiRole.Properties.ManagedPolicyArns", ["ReadOnlyAccess"], "managed"),
        ("Statements.1.NotAction", "dynamodb:DeleteTable", "everything but"),
        ("Statements.1.Action", ["dynamodb:*"], "action dynamodb:*"),
        ("Statements.1.Resource", "*", "resource *"),
        ("InferenceRole.Properties.Policies.0.PolicyDocument.Statement.10", ABSENT, "InferenceRole: resource *"),
        ("Statements.1.Resource", {"Fn::Sub": "${JobsTable.Arn}/jobs/*"}, "resource ${JobsTable"),
        ("Statements.2.Resource", {"Fn::Sub": "${ContentBucket.Arn}/*"}, "resource ${ContentBucket"),
    ],
    account.functions_log_to_groups_that_expire: [
        ("Fetch.LoggingConfig", ABSENT, "no log"),
        ("ApiLogGroup.Properties.RetentionInDays", ABSENT, "no log"),
        ("Statements.0.Resource", {"Fn::GetAtt": ["FetchLogGroup", "Arn"]}, "writes logs to"),
    ],
    account.functions_are_not_traced: [("/Globals.Function.Tracing", "Active", "X-Ray")],
    account.tables_forget_and_recover: [
        ("Table.TimeToLiveSpecification", ABSENT, "no TTL"),
        ("Table.TimeToLiveSpecification.AttributeName", "ttl", "no TTL"),
        ("Table.PointInTimeRecoverySpecification", ABSENT, "no point"),
        ("Table.SSESpecification", ABSENT, "not encrypted"),
        ("Table.BillingMode", "PROVISIONED", "not on demand"),
    ],
    account.buckets_are_private: [
        ("Bucket.PublicAccessBlockConfiguration.BlockPublicPolicy", False, "public access"),
        ("Bucket.BucketEncryption", ABSENT, "not encrypted"),
        ("ContentBucketPolicy", ABSENT, "without TLS"),
        ("ContentBucketPolicy.Properties.PolicyDocument.Statement.0.Resource", [], "without TLS"),
    ],
    account.buckets_outlive_jobs: [
        ("/Parameters.TtlSeconds.MaxValue", 31 * 86400, "after 38 days"),
        ("Bucket.LifecycleConfiguration", ABSENT, "ever expires"),
        ("Bucket.LifecycleConfiguration.Rules.1.Prefix", "", "after 1 days"),
        ("Bucket.LifecycleConfiguration.Rules.1.Prefix", "jobs/job_0", "after 1 days"),
        ("Bucket.LifecycleConfiguration.Rules.0.Status", "Enabled", "for ever"),
    ],
    account.layers_build_for_their_functions: [
        ("SiftLayer.Metadata.BuildArchitecture", ABSENT, "SiftLayer is not built"),
        ("SiftLayer.Metadata.BuildMethod", "python3.13", "SiftLayer is not built"),
        ("SiftLayer.Properties.CompatibleArchitectures", ["x86_64"], "SiftLayer: it is not compatible"),
        ("/Globals.Function.Layers", [{"Ref": "RuntimeLayer"}], "SiftLayer: no function uses it"),
        ("SiftLayer.Properties.ContentUri", "layers/no", "not exist"),
    ],
    account.parameters_are_used: [
        ("/Parameters.Spare", {"Type": "String"}, "Spare"),
        ("/Conditions.Spare", {"Fn::Equals": ["a", "a"]}, "Spare"),
    ],
    account.nothing_names_a_region_or_partition: [
        ("EventBus.Properties.Name", "arn:aws:events:::event-bus/sift", "names a place"),
        ("EventBus.Properties.Name", "sift-us-gov-east-1", "names a place"),
    ],
}
CASES = [(rule, *case) for rule, cases in BREAKS.items() for case in cases]


def _break(template: Template, path: str, value: Any) -> Template:
    broken = copy.deepcopy(template)
    at: Any = broken if path.startswith("/") else broken["Resources"]
    first, *rest = path.lstrip("/").split(".")
    *parents, last = [*SHORTHANDS.get(first, first).split("."), *rest]
    for step in parents:
        at = at[int(step) if isinstance(at, list) else step]
    if value is ABSENT:
        del at[
            int(last) if isinstance(at, list) else last
        ]  # a path that does not exist is a mistake of the table above, and fails
    else:
        at[last] = value
    return broken


@pytest.mark.parametrize(
    ("rule", "path", "value", "named"), CASES, ids=[f"{rule.__name__}-{path}" for rule, path, *_ in CASES]
)
def test_rule_notices(rule: Rule, path: str, value: Any, named: str, template: Template) -> None:
    complaints = list(rule(_break(template, path, value)))
    assert any(named in complaint for complaint in complaints), complaints


def test_every_rule_is_broken() -> None:
    assert list(BREAKS) == [*flow.RULES, *account.RULES]
