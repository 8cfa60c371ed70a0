"""A stack's data in a file: table items, objects and messages, as gzipped JSON."""

from __future__ import annotations

import base64
import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

from moto.backends import get_backend

from sift_client.local.blueprint import Blueprint
from sift_client.local.cloud import Cloud
from sift_client.local.errors import TemplateError
from sift_client.local.naming import REGION

VERSION = 1
DELAY_SECONDS = 900  # SQS quotas: longest delay of a message


def save_state(path: Path, cloud: Cloud, blueprint: Blueprint, key: str | None, site_port: int | None = None) -> None:
    """Writes everything the stack holds, by logical id; the file is replaced at once or not at all."""
    state = {
        "version": VERSION,
        "key": key,
        "site_port": site_port,
        "tables": {logical: _list_items(cloud, table.name) for logical, table in blueprint.tables.items()},
        "buckets": {logical: _list_objects(cloud, bucket) for logical, bucket in blueprint.buckets.items()},
        "queues": {logical: _list_messages(cloud, queue.name) for logical, queue in blueprint.queues.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    # The API key is in it, so it is nobody else's to read.
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as raw:
        with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
            packed.write(json.dumps(state, default=_pack).encode())
        raw.flush()
        os.fsync(raw.fileno())
    partial.replace(path)


def load_state(path: Path, cloud: Cloud, blueprint: Blueprint) -> str | None:
    """Fills a new stack from a file, if there is one, and gives the key that was saved.

    Messages are sent again: their receive counts start anew. Raises TemplateError for a file of another version, or
    with data of a table, bucket or queue that the template no longer has.
    """
    if not path.exists():
        return None
    state = _read(path)
    if state.get("version") != VERSION:
        raise TemplateError(f"{path}: state of version {state.get('version')}; this stack reads {VERSION}")
    for kind, known in (("tables", blueprint.tables), ("buckets", blueprint.buckets), ("queues", blueprint.queues)):
        missing = {logical for logical, content in state[kind].items() if content} - set(known)
        if missing:
            raise TemplateError(f"{path}: the template has no {kind} {sorted(missing)}, whose data is saved there")
    for logical, items in state["tables"].items():
        for item in items:
            cloud.client("dynamodb").put_item(TableName=blueprint.tables[logical].name, Item=item)
    for logical, objects in state["buckets"].items():
        for stored in objects:
            cloud.client("s3").put_object(Bucket=blueprint.buckets[logical], **stored)
    for logical, messages in state["queues"].items():
        sqs = cloud.client("sqs")
        for message in messages:
            url = sqs.get_queue_url(QueueName=blueprint.queues[logical].name)["QueueUrl"]
            sqs.send_message(QueueUrl=url, **message)
    key = state.get("key")
    return None if key is None else str(key)


def saved_site_port(path: Path) -> int:
    """The port that the sample site had, so that targets which are left find it again; 0 when none was saved."""
    return int(_read(path).get("site_port") or 0) if path.exists() else 0


def _read(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()), object_hook=_unpack)
    except (OSError, EOFError, ValueError) as error:
        raise TemplateError(f"{path}: not a state file: {error}") from error
    return state


def _list_items(cloud: Cloud, table: str) -> list[dict[str, Any]]:
    pages = cloud.client("dynamodb").get_paginator("scan").paginate(TableName=table)
    return [item for page in pages for item in page["Items"]]


def _list_objects(cloud: Cloud, bucket: str) -> list[dict[str, Any]]:
    s3 = cloud.client("s3")
    stored = []
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", []):
            answer = s3.get_object(Bucket=bucket, Key=entry["Key"])
            kept = {
                name: answer[name]
                for name in ("ContentType", "ContentEncoding", "ContentDisposition", "CacheControl", "Metadata")
                if answer.get(name)
            }
            stored.append({"Key": entry["Key"], "Body": answer["Body"].read(), **kept})
    return stored


def _list_messages(cloud: Cloud, queue: str) -> list[dict[str, Any]]:
    # Straight from moto: a receive would not give those that are waiting for their time.
    backend: Any = get_backend("sqs")[cloud.account][REGION]
    now = time.time()
    saved = []
    for message in backend.queues[queue]._messages:
        waits = max(message.visible_at / 1000, message.delayed_until / 1000) - now
        entry: dict[str, Any] = {"MessageBody": message.body}
        if message.message_attributes:
            entry["MessageAttributes"] = message.message_attributes
        if message.group_id:
            entry["MessageGroupId"] = message.group_id
        if message.deduplication_id:
            entry["MessageDeduplicationId"] = message.deduplication_id
        if waits > 0 and not queue.endswith(".fifo"):
            entry["DelaySeconds"] = min(int(waits) + 1, DELAY_SECONDS)
        saved.append(entry)
    return saved


def _pack(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(f"not storable: {type(value)}")


def _unpack(value: dict[str, Any]) -> Any:
    # DynamoDB's own JSON has type names as keys, never this one alone with text.
    if set(value) == {"base64"} and isinstance(value["base64"], str):
        return base64.b64decode(value["base64"])
    return value
