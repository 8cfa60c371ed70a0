"""Rules for what the stack may do and keeps in the account: permissions, logs, table, bucket, layers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.template.document import ROOT, Template, evaluate, functions, resources, target, walk

# The one wildcard: objects under a prefix of our own bucket, which have no names to list beforehand.
OBJECTS = re.compile(r"\$\{\w+\.Arn\}/[a-z]+/\*")

#: What has no name before it is made, and is asked for by Lambda itself: the interfaces of a function in a network.
INTERFACES = {
    "ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses",
}  # fmt: skip

#: Below this, objects belong to jobs.
JOBS = "jobs/"


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _statements(role: dict[str, Any]) -> list[dict[str, Any]]:
    entries = [entry for policy in role.get("Policies", []) for entry in policy["PolicyDocument"]["Statement"]]
    # A right that hangs on a condition is judged as one that is given.
    return [entry["Fn::If"][1] if "Fn::If" in entry else entry for entry in entries]


def permissions_name_what_they_allow(template: Template) -> Iterator[str]:
    """No wildcard in an action or a resource, and no managed policy, neither attached nor added by SAM.

    Network interfaces excepted, which the code of the function is denied.
    """
    roles = resources(template, "AWS::IAM::Role")
    for name, function in functions(template).items():
        if target(function.get("Role")) not in roles or "Policies" in function:
            yield f"{name}: SAM would make its role, with managed policies for every queue and log group"
    for name, role in roles.items():
        properties = role["Properties"]
        if properties.get("ManagedPolicyArns"):
            yield f"{name}: managed policies"
        statements = _statements(properties)
        denied = [set(_as_list(found["Action"])) for found in statements if _denies_code(found)]
        for statement in statements:
            if statement["Effect"] == "Deny" or (
                statement["Resource"] == "*" and set(_as_list(statement["Action"])) <= INTERFACES & set().union(*denied)
            ):
                continue
            if {"NotAction", "NotResource"} & statement.keys():
                yield f"{name}: allows everything but something"
                continue
            for action in _as_list(statement["Action"]):
                if "*" in action:
                    yield f"{name}: action {action}"
            for resource in _as_list(statement["Resource"]):
                text = resource.get("Fn::Sub") if isinstance(resource, dict) else resource
                if isinstance(text, str) and not (OBJECTS.fullmatch(text) and _is_bucket(template, resource)):
                    yield f"{name}: resource {text}"


def _denies_code(statement: dict[str, Any]) -> bool:
    """Whether it denies to the code of any function what Lambda may do with its role."""
    ((operator, values),) = statement.get("Condition", {"": {}}).items()
    (pattern,) = values.get("lambda:SourceFunctionArn", {"": ""}).values() if operator == "ArnLike" else ("",)
    return statement["Effect"] == "Deny" and statement["Resource"] == "*" and pattern.endswith(":function:*")


def _is_bucket(template: Template, resource: Any) -> bool:
    return target(resource) in resources(template, "AWS::S3::Bucket")


def functions_log_to_groups_that_expire(template: Template) -> Iterator[str]:
    """Each function writes to a log group of its own, which forgets, and may write to no other."""
    groups = resources(template, "AWS::Logs::LogGroup")
    for name, function in functions(template).items():
        group = target(function.get("LoggingConfig", {}).get("LogGroup"))
        if not groups.get(group, {}).get("Properties", {}).get("RetentionInDays"):
            yield f"{name}: no log group with a retention"
        role = template["Resources"].get(target(function.get("Role")), {"Properties": {}})["Properties"]
        written = [target(s["Resource"]) for s in _statements(role) if "logs:PutLogEvents" in s["Action"]]
        if written != [group]:
            yield f"{name}: writes logs to {written}, not to {group}"


def functions_are_not_traced(template: Template) -> Iterator[str]:
    """The X-Ray SDK is not in the layers."""
    for name, function in functions(template).items():
        if function.get("Tracing", "PassThrough") == "Active":
            yield f"{name}: X-Ray is on"


def tables_forget_and_recover(template: Template) -> Iterator[str]:
    """Tables are on demand, encrypted, swept by TTL on `expires_at`, and can go back in time."""
    for name, table in resources(template, "AWS::DynamoDB::Table").items():
        properties = table["Properties"]
        if properties.get("TimeToLiveSpecification") != {"AttributeName": "expires_at", "Enabled": True}:
            yield f"{name}: no TTL on expires_at"
        if not properties.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled"):
            yield f"{name}: no point-in-time recovery"
        if not properties.get("SSESpecification", {}).get("SSEEnabled"):
            yield f"{name}: not encrypted with a KMS key"
        if properties.get("BillingMode") != "PAY_PER_REQUEST":
            yield f"{name}: not on demand"


def buckets_are_private(template: Template) -> Iterator[str]:
    """Buckets have no public access, TLS only, and encryption."""
    policies = [policy["Properties"] for policy in resources(template, "AWS::S3::BucketPolicy").values()]
    for name, bucket in resources(template, "AWS::S3::Bucket").items():
        properties = bucket["Properties"]
        block = properties.get("PublicAccessBlockConfiguration", {})
        if len(block) != 4 or not all(value is True for value in block.values()):
            yield f"{name}: public access is not blocked"
        if "BucketEncryption" not in properties:
            yield f"{name}: not encrypted"
        both = [{"Fn::GetAtt": [name, "Arn"]}, {"Fn::Sub": f"${{{name}.Arn}}/*"}]
        if not any(
            target(policy["Bucket"]) == name
            and (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
            and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}
            and statement["Resource"] == both
            for policy in policies
            for statement in policy["PolicyDocument"]["Statement"]
        ):
            yield f"{name}: can be read without TLS"


def buckets_outlive_jobs(template: Template) -> Iterator[str]:
    """The lifecycle deletes nothing before the longest deadline and TTL, and nothing when TTL is 0."""
    longest = sum(template["Parameters"][name]["MaxValue"] for name in ("DeadlineSeconds", "TtlSeconds"))
    for name, bucket in resources(template, "AWS::S3::Bucket").items():
        rules = bucket["Properties"].get("LifecycleConfiguration", {}).get("Rules", [])
        expiring = [rule for rule in rules if "ExpirationInDays" in rule]
        if not any(rule.get("Prefix") == JOBS for rule in expiring):
            yield f"{name}: nothing in it ever expires"
        for rule in expiring:
            prefix = rule.get("Prefix", "")
            if not (prefix.startswith(JOBS) or JOBS.startswith(prefix)):
                continue
            days = rule["ExpirationInDays"]
            if days * 86400 <= longest:
                yield f"{name}: {rule['Id']} deletes after {days} days, a job may last {longest} s"
            if evaluate(template, rule["Status"], {"TtlSeconds": "0"}) != "Disabled":
                yield f"{name}: {rule['Id']} deletes jobs that are kept for ever"


def layers_build_for_their_functions(template: Template) -> Iterator[str]:
    """Layers exist, are used, and are built for the runtime and processor of the functions."""
    layers = resources(template, "AWS::Serverless::LayerVersion")
    used = {target(layer) for function in functions(template).values() for layer in function["Layers"]}
    for name, function in functions(template).items():
        for layer in map(target, function["Layers"]):
            wanted = {"BuildMethod": "makefile", "BuildArchitecture": function["Architectures"][0]}
            if layer not in layers or layers[layer].get("Metadata") != wanted:
                yield f"{name}: layer {layer} is not built for {wanted}"
    for name, layer_version in layers.items():
        if name not in used:
            yield f"{name}: no function uses it"
        # layers/layer.mk installs for the first that the template names.
        architecture = layer_version["Metadata"].get("BuildArchitecture")
        if layer_version["Properties"]["CompatibleArchitectures"] != [architecture]:
            yield f"{name}: it is not compatible with what it is built for"
        if not (ROOT / layer_version["Properties"]["ContentUri"]).is_dir():
            yield f"{name}: its folder does not exist"


def parameters_are_used(template: Template) -> Iterator[str]:
    """A parameter that changes nothing misleads; Rules alone do not count."""
    body = [template[section] for section in ("Conditions", "Globals", "Resources")]
    refs = {value["Ref"] for value in walk(body) if isinstance(value, dict) and "Ref" in value}
    texts = [str(value["Fn::Sub"]) for value in walk(body) if isinstance(value, dict) and "Fn::Sub" in value]
    refs |= {name for text in texts for name in re.findall(r"\$\{(\w+)\}", text)}
    for name in template["Parameters"]:
        if name not in refs:
            yield f"{name}: nothing uses it"
    conditions = {value["Fn::If"][0] for value in walk(body) if isinstance(value, dict) and "Fn::If" in value}
    conditions |= {resource["Condition"] for resource in template["Resources"].values() if "Condition" in resource}
    for name in template["Conditions"]:
        if name not in conditions:
            yield f"{name}: nothing depends on it"


def nothing_names_a_region_or_partition(template: Template) -> Iterator[str]:
    """The stack deploys in any region and partition, so ARNs come from intrinsics."""
    for value in walk(template["Resources"]):
        if isinstance(value, str) and re.search(r"arn:aws|\b[a-z]{2}(-[a-z]+)+-\d\b|execute-api", value):
            yield f"names a place: {value}"


RULES = (
    permissions_name_what_they_allow,
    functions_log_to_groups_that_expire,
    functions_are_not_traced,
    tables_forget_and_recover,
    buckets_are_private,
    buckets_outlive_jobs,
    layers_build_for_their_functions,
    parameters_are_used,
    nothing_names_a_region_or_partition,
)
