"""What the template's resources are called here: physical names, ARNs and what `Ref` and `GetAtt` give."""

from __future__ import annotations

from typing import Any

from sift_client.local.document import Document
from sift_client.local.errors import TemplateError
from sift_client.local.intrinsics import NO_VALUE, Resolver

REGION = "us-east-1"

# type: (property that names it, service and path of its ARN)
_ARNS = {
    "AWS::DynamoDB::Table": ("TableName", "dynamodb:{region}:{account}:table/{name}"),
    "AWS::SQS::Queue": ("QueueName", "sqs:{region}:{account}:{name}"),
    "AWS::S3::Bucket": ("BucketName", "s3:::{name}"),
    "AWS::Events::EventBus": ("Name", "events:{region}:{account}:event-bus/{name}"),
    "AWS::Events::Rule": ("Name", "events:{region}:{account}:rule/{name}"),
    "AWS::Serverless::Function": ("FunctionName", "lambda:{region}:{account}:function:{name}"),
    "AWS::Serverless::LayerVersion": ("LayerName", "lambda:{region}:{account}:layer:{name}:1"),
    "AWS::IAM::Role": ("RoleName", "iam::{account}:role/{name}"),
    "AWS::Logs::LogGroup": ("LogGroupName", "logs:{region}:{account}:log-group:{name}:*"),
    "AWS::CloudWatch::Alarm": ("AlarmName", "cloudwatch:{region}:{account}:alarm:{name}"),
    "AWS::SNS::Topic": ("TopicName", "sns:{region}:{account}:{name}"),
}


class Naming:
    """Names of one stack's resources, known before any of them is made."""

    def __init__(self, document: Document, stack: str, account: str, aws_url: str, api_url: str) -> None:
        self._document = document
        self.stack, self.account = stack, account
        self._aws_url, self._api_url = aws_url, api_url
        self._resources = document.section("Resources")
        pseudo = {
            "AWS::Region": REGION,
            "AWS::AccountId": account,
            "AWS::StackName": stack,
            "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{account}:stack/{stack}/local",
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
        }
        self.resolver = Resolver(document, pseudo, self)

    def physical(self, logical_id: str) -> str:
        """The physical name of a resource; what the template sets goes before `<stack>-<logical id>`."""
        kind = self._kind(logical_id)
        naming_property = _ARNS.get(kind, ("Name", ""))[0]
        properties = self._resources[logical_id].get("Properties") or {}
        if naming_property in properties:
            name = self.resolver.resolve(properties[naming_property])
            if name is not NO_VALUE:
                return str(name)
        if kind == "AWS::S3::Bucket":
            # Bucket names are lower case and shared by all accounts, as in AWS.
            return f"{self.stack}-{logical_id}-{self.account}".lower()
        suffix = ".fifo" if properties.get("FifoQueue") in (True, "true") else ""
        return f"{self.stack}-{logical_id}{suffix}"

    def arn(self, logical_id: str) -> str:
        """The ARN of a resource."""
        kind = self._kind(logical_id)
        if kind not in _ARNS:
            raise TemplateError(f"{logical_id}: the local stack knows no ARN of a {kind}")
        name = self.physical(logical_id)
        return "arn:aws:" + _ARNS[kind][1].format(region=REGION, account=self.account, name=name)

    def rule_arn(self, name: str) -> str:
        """The ARN of a schedule that is a rule."""
        return f"arn:aws:events:{REGION}:{self.account}:rule/{name}"

    def schedule_arn(self, name: str) -> str:
        """The ARN of a schedule of EventBridge Scheduler."""
        return f"arn:aws:scheduler:{REGION}:{self.account}:schedule/default/{name}"

    def function_of(self, arn: str) -> str | None:
        """The logical id of the function with this ARN."""
        return next((name for name in self._resources if self._is_function(name) and self.arn(name) == arn), None)

    def queue_url(self, name: str) -> str:
        """The URL of a queue of this stack by its physical name."""
        return f"{self._aws_url}/{self.account}/{name}"

    def ref(self, logical_id: str) -> str:
        """What `Ref` gives."""
        kind = self._kind(logical_id)
        name = self.physical(logical_id)
        if kind == "AWS::SQS::Queue":
            return self.queue_url(name)
        if kind in ("AWS::Serverless::LayerVersion", "AWS::SNS::Topic"):
            return self.arn(logical_id)
        if kind == "AWS::Events::Rule":
            return name.split("|")[-1]
        return name

    def attribute(self, logical_id: str, name: str) -> str:
        """What `GetAtt` gives."""
        if logical_id not in self._resources and name == "Arn" and self._is_function(logical_id.removesuffix("Role")):
            # SAM makes this role itself for a function that names none.
            return f"arn:aws:iam::{self.account}:role/{self.stack}-{logical_id}"
        kind = self._kind(logical_id)
        if name == "Arn":
            return self.arn(logical_id)
        known = {
            ("AWS::SQS::Queue", "QueueName"): lambda: self.physical(logical_id),
            ("AWS::SQS::Queue", "QueueUrl"): lambda: self.ref(logical_id),
            ("AWS::Events::EventBus", "Name"): lambda: self.physical(logical_id),
            ("AWS::Serverless::HttpApi", "ApiEndpoint"): lambda: self._api_url,
        }
        if (kind, name) not in known:
            raise TemplateError(f"{logical_id}.{name}: the local stack knows no such attribute of a {kind}")
        return known[kind, name]()

    def exists(self, resource: dict[str, Any]) -> bool:
        """Whether the resource's own condition lets it be made."""
        return "Condition" not in resource or self.resolver.holds(resource["Condition"])

    def _is_function(self, logical_id: str) -> bool:
        return bool(self._resources.get(logical_id, {}).get("Type") == "AWS::Serverless::Function")

    def _kind(self, logical_id: str) -> str:
        if logical_id not in self._resources:
            raise TemplateError(f"the template refers to {logical_id}, which it does not have")
        return str(self._resources[logical_id].get("Type"))
