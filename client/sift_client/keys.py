"""`sift keys`: API keys and webhook secrets, with the rights of whoever may write the table.

There is no route for it: a key can't make keys. sift's own key service does the work, so nothing is known twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from sift_client.commands import EXIT_DONE, Usage
from sift_client.connection import find_local_table
from sift_client.errors import SiftClientError
from sift_client.tables import align, clean

if TYPE_CHECKING:
    from sift.identity import KeyRecord
    from sift.services.keys import KeyService
    from sift.store.dynamo import DynamoStore

T = TypeVar("T")

#: The output of template.yaml that names the table.
TABLE_OUTPUT = "TableName"
_DAY_SECONDS = 86_400
#: A key lasts for a hundred years at most, or for ever.
MOST_DAYS = 36_500
#: Two secrets of a caller sign for a month at most.
MOST_HOURS = 720
_KEY_OR_ID = re.compile(r"([0-9a-f]{12})$|sift_([0-9a-f]{12})_")
_HEADINGS = ("key id", "tenant", "actor", "scopes", "class", "created", "expires", "revoked")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the commands and their options to a parser."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    create = commands.add_parser("create", help="make a key and show it, this once")
    create.add_argument("--tenant", required=True, help="whose key it is; jobs belong to tenant and actor")
    create.add_argument("--actor", required=True, help="who uses it")
    create.add_argument(
        "--scope", action="append", metavar="SCOPE", help="fetch (the default), inference, admin or admin:TENANT"
    )
    create.add_argument("--class", dest="caller_class", default="default", metavar="NAME", help="its caller class")
    create.add_argument(
        "--days", type=_days, metavar="N", help=f"it expires after N days, 1 to {MOST_DAYS} (default: never)"
    )
    create.add_argument(
        "--limit", action="append", default=[], metavar="NAME=N", help="a limit of its own, before those of its class"
    )
    create.add_argument("--subject", help="who it is for, kept with its jobs")
    create.add_argument("--application", help="the program that gets it, kept with its jobs")
    create.add_argument("--allow-model", action="append", metavar="MODEL", help="only these models")
    create.add_argument("--deny-model", action="append", default=[], metavar="MODEL", help="not these models")
    create.add_argument(
        "--events", action="store_true", help="events and schedules may submit with it (EventKeyId takes its id)"
    )
    _add_table(create)
    create.set_defaults(run=run_create)

    listing = commands.add_parser("list", help="list the keys, the newest first; never a secret")
    _add_table(listing)
    listing.set_defaults(run=run_list)

    revoke = commands.add_parser("revoke", help="revoke a key")
    revoke.add_argument("key_id", metavar="ID", help="the part of the key between the underscores, or the key")
    _add_table(revoke)
    revoke.set_defaults(run=run_revoke)

    secret = commands.add_parser("webhook-secret", help="make the secret that signs a caller's webhooks, or the next")
    secret.add_argument("--tenant", required=True, help="of the caller")
    secret.add_argument("--actor", required=True, help="of the caller")
    secret.add_argument(
        "--overlap", type=_hours, default=24, metavar="HOURS",
        help=f"the one before signs as well for so long, 0 to {MOST_HOURS} (default: 24)",
    )  # fmt: skip
    _add_table(secret)
    secret.set_defaults(run=run_webhook_secret)


def run_create(args: argparse.Namespace) -> int:
    """Print the key on standard output, what it is for on standard error."""
    from sift.clock import SystemClock

    now = SystemClock().now_ms() // 1000
    service = _open(args)
    try:
        key = _run(
            service.create(
                tenant=args.tenant,
                actor=args.actor,
                scopes=args.scope or ["fetch"],
                limits=dict(map(_read_limit, args.limit)),
                caller_class=args.caller_class,
                expires_at=None if args.days is None else now + args.days * _DAY_SECONDS,
                subject=args.subject,
                application=args.application,
                allowed_models=args.allow_model,
                denied_models=args.deny_model,
                events=args.events,
            )
        )
    except ValueError as error:
        raise Usage(str(error)) from None
    records = [found for found in [_run(service.find(key.split("_")[1]))] if found]
    if args.json:
        print(json.dumps({"key": key, **_describe(records[0])}, indent=2))
    else:
        print(key)
        _print_records(records, sys.stderr)
        print("The key is shown this once; only a hash of its secret is kept.", file=sys.stderr)
    return EXIT_DONE


def run_list(args: argparse.Namespace) -> int:
    """A table, or with --json a list of objects."""
    records = _run(_open(args).list())
    if args.json:
        print(json.dumps([_describe(record) for record in records], indent=2))
    else:
        _print_records(records, sys.stdout)
    return EXIT_DONE


def run_revoke(args: argparse.Namespace) -> int:
    """Revoke; again changes nothing."""
    from sift.services.keys import CACHE_MS

    key_id = _read_key_id(args.key_id)
    record = _run(_open(args).revoke(key_id)) if key_id else None
    if record is None:
        # What was typed may be a secret, so it is not repeated unless it is an id.
        named = key_id or "with that id; an id has 12 characters of 0-9 and a-f"
        raise SiftClientError(f"there is no key {named}", "sift keys list shows their ids.")
    if args.json:
        print(json.dumps(_describe(record), indent=2))
    else:
        print(f"{record.key_id}: revoked; functions that know it refuse it within {CACHE_MS // 1000} seconds")
    return EXIT_DONE


def run_webhook_secret(args: argparse.Namespace) -> int:
    """Print the secret, this once; webhooks are signed with it from now on."""
    from sift.clock import SystemClock
    from sift.services.webhook_secrets import WebhookSecrets

    service = WebhookSecrets(_open_store(args), SystemClock())
    try:
        secret = _run(service.renew(args.tenant, args.actor, args.overlap * 3600))
    except ValueError as error:
        raise Usage(str(error)) from None
    if args.json:
        print(json.dumps({"tenant": args.tenant, "actor": args.actor, "secret": secret}, indent=2))
    else:
        print(secret)
        print(f"Give it to the receiver. One before it signs for {args.overlap} more hours.", file=sys.stderr)
    return EXIT_DONE


def _add_table(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--table", help="the deployment's table (default: SIFT_TABLE)")
    where.add_argument("--stack", help="the deployment's CloudFormation stack, whose outputs name the table")
    where.add_argument("--local", action="store_true", help="the local stack that runs in this folder")
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")


def _hours(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text[:9]) > MOST_HOURS:
        raise argparse.ArgumentTypeError(f"not a number from 0 to {MOST_HOURS}")
    return int(text)


def _days(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"not a number from 1 to {MOST_DAYS}")
    return number


def _read_key_id(text: str) -> str | None:
    """The id that a text is, or that the key has which it is, whole or cut; None: neither."""
    match = _KEY_OR_ID.match(text.strip())
    return match and (match[1] or match[2])


def _read_limit(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    try:
        return name, int(value)
    except ValueError:
        raise Usage(f"--limit takes NAME=N, not {text!r}") from None


def _open(args: argparse.Namespace) -> KeyService:
    """The key service over the table that the options name."""
    from sift.clock import SystemClock
    from sift.services.keys import KeyService

    return KeyService(_open_store(args), SystemClock())


def _open_store(args: argparse.Namespace) -> DynamoStore:
    from sift.store.dynamo import DynamoStore

    client, table = _find_table(args)
    return DynamoStore(client, table)


def _find_table(args: argparse.Namespace) -> tuple[Any, str]:
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    if args.local:
        local = find_local_table()
        if not _answers(local.endpoint):
            raise SiftClientError("the local stack of this folder does not run", "Start it here: sift local --site")
        session = boto3.Session("local", "local", region_name="us-east-1")
        return session.client("dynamodb", endpoint_url=local.endpoint), local.name
    table = args.table or (None if args.stack else os.environ.get("SIFT_TABLE"))
    if not (table or args.stack):
        raise Usage("no deployment is named", "Use --stack NAME, --table NAME (or SIFT_TABLE), or --local.")
    try:
        session = boto3.Session()
        if session.get_credentials() is None:
            raise SiftClientError("there are no AWS credentials", "Set AWS_PROFILE, or sign in as for deploying.")
        return session.client("dynamodb"), table or _read_output(session.client("cloudformation"), args.stack)
    except ClientError as error:
        raise _explain(error) from None
    except BotoCoreError as error:
        raise SiftClientError(str(error), "AWS_PROFILE and AWS_REGION say which account and region.") from None


def _answers(endpoint: str) -> bool:
    """Whether anything listens there: a local stack that was killed leaves its file behind."""
    try:
        parts = urlsplit(endpoint)
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=5):
            return True
    except (OSError, ValueError):
        return False


def _read_output(cloudformation: Any, stack: str) -> str:
    outputs = cloudformation.describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
    for output in outputs:
        if output["OutputKey"] == TABLE_OUTPUT:
            return str(output["OutputValue"])
    raise SiftClientError(f"the stack {stack} has no output {TABLE_OUTPUT}", "Is it a stack of sift's template.yaml?")


def _run(work: Coroutine[Any, Any, T]) -> T:
    from botocore.exceptions import ClientError

    from sift.errors import SiftError

    try:
        return asyncio.run(work)
    except ClientError as error:
        raise _explain(error) from None
    except SiftError as error:
        raise SiftClientError(error.detail, error.hint) from None


def _explain(error: Any) -> SiftClientError:
    found = error.response.get("Error", {})
    hint = "Check the name of the table or stack, AWS_PROFILE and AWS_REGION."
    return SiftClientError(f"AWS refused: {found.get('Code')}: {found.get('Message')}", hint)


def _describe(record: KeyRecord) -> dict[str, Any]:
    """A key without its hash."""
    identity = record.identity
    models = identity.allowed_models
    return {
        "key_id": record.key_id,
        "tenant": identity.tenant,
        "actor": identity.actor,
        "subject": identity.subject,
        "application": identity.application,
        "scopes": list(identity.scopes),
        "class": identity.caller_class,
        "limits": dict(identity.limits),
        "allowed_models": None if models is None else list(models),
        "denied_models": list(identity.denied_models),
        "events": record.events,
        "created_at": _moment(record.created_at),
        "expires_at": _moment(record.expires_at),
        "revoked_at": _moment(record.revoked_at),
    }


def _moment(seconds: int | None) -> str | None:
    """A time for people and scripts; `@<seconds>` where no date has a way to write it. It must not keep a key from
    being listed."""
    from sift.clock import rfc3339

    try:
        return None if seconds is None else rfc3339(seconds * 1000)
    except (ValueError, OverflowError, OSError):
        return f"@{seconds}"


def _print_records(records: Any, stream: Any) -> None:
    rows = []
    for record in records:
        found = _describe(record)
        scopes = ",".join(found["scopes"])
        times = [found["created_at"] or "", found["expires_at"] or "never", found["revoked_at"] or ""]
        rows.append([found["key_id"], found["tenant"], found["actor"], scopes, found["class"], *times])
    align(_HEADINGS, [[clean(cell) for cell in row] for row in rows], stream)
