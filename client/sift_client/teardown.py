"""`sift teardown`: delete a deployed stack, with the table and the bucket that outlive it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from sift_client.commands import EXIT_DONE, EXIT_FAILED
from sift_client.errors import SiftClientError

#: Outputs of template.yaml that name what the stack leaves behind when it goes.
TABLE_OUTPUT, BUCKET_OUTPUT = "TableName", "BucketName"
GONE = "DELETE_COMPLETE"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options to a parser."""
    parser.add_argument("--stack", required=True, metavar="NAME", help="the stack's name, or its ARN once it is gone")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run_teardown(args: argparse.Namespace) -> int:
    """Show what goes, ask, and delete it; exit code 1 when the answer is not the stack's name."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        session = boto3.Session()
        if session.get_credentials() is None:
            raise SiftClientError("there are no AWS credentials", "Set AWS_PROFILE, or sign in as for deploying.")
        stack = _describe(session.client("cloudformation"), args.stack)
        print(f"stack   {stack['StackId']}\ntable   {stack[TABLE_OUTPUT]}\nbucket  {stack[BUCKET_OUTPUT]}")
        print("All of it is deleted, with every key, job and content; nothing brings it back.", flush=True)
        if not args.yes and input("The stack's name, to go on: ") != stack["StackName"]:
            print("nothing was deleted", file=sys.stderr)
            return EXIT_FAILED
        _delete(session.client, stack)
    except ClientError as error:
        found = error.response.get("Error", {})
        raise SiftClientError(
            f"AWS refused {error.operation_name}: {found.get('Code')}: {found.get('Message')}",
            "What was deleted stays so; run it again, with the stack's ARN once the stack is gone.",
        ) from None
    except BotoCoreError as error:
        raise SiftClientError(str(error), "AWS_PROFILE and AWS_REGION say which account and region.") from None
    print("all gone")
    return EXIT_DONE


def _describe(cloudformation: Any, name: str) -> dict[str, str]:
    """Name, ARN and status of a stack, with the outputs that matter here."""
    found = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    outputs = {row["OutputKey"]: row["OutputValue"] for row in found.get("Outputs", [])}
    if not {TABLE_OUTPUT, BUCKET_OUTPUT} <= outputs.keys():
        raise SiftClientError(f"{name} is no stack of sift's template.yaml", f"It has no output {TABLE_OUTPUT}.")
    return {**outputs, **{key: found[key] for key in ("StackName", "StackId", "StackStatus")}}


def _delete(client: Any, stack: dict[str, str]) -> None:
    """The stack first, so that nothing writes any more; what is already gone is no error."""
    if stack["StackStatus"] != GONE:
        cloudformation = client("cloudformation")
        cloudformation.delete_stack(StackName=stack["StackId"])
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack["StackId"])
    _delete_bucket(client("s3"), stack[BUCKET_OUTPUT])
    dynamodb = client("dynamodb")
    try:
        dynamodb.delete_table(TableName=stack[TABLE_OUTPUT])
        dynamodb.get_waiter("table_not_exists").wait(TableName=stack[TABLE_OUTPUT])
    except dynamodb.exceptions.ResourceNotFoundException:
        pass


def _delete_bucket(s3: Any, bucket: str) -> None:
    try:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            keys = [{"Key": found["Key"]} for found in page.get("Contents", [])]
            if keys:
                refused = s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True}).get("Errors", [])
                if refused:
                    raise SiftClientError(f"{bucket}: {refused[0]['Code']}: {refused[0]['Message']}", "Run it again.")
        s3.delete_bucket(Bucket=bucket)
    except s3.exceptions.NoSuchBucket:
        pass
