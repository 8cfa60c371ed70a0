"""Where the service is and which key opens it: arguments, the environment, then the local stack's file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sift_client.errors import SiftClientError

#: Where a running local stack can be found, and what it leaves behind for the next one in the same folder.
LOCAL_FILE = Path(".sift/local.json")
STATE_FILE = Path(".sift/state.json.gz")
LOG_FOLDER = Path(".sift/logs")


@dataclass(frozen=True)
class Connection:
    """`url`: the root of the HTTP API without a trailing slash. `key`: `sift_<key id>_<secret>`."""

    url: str
    key: str


@dataclass(frozen=True)
class LocalTable:
    """Where a local stack keeps its keys: `endpoint` answers as DynamoDB does."""

    endpoint: str
    name: str


def find_connection(
    url: str | None = None,
    key: str | None = None,
    environment: Mapping[str, str] = os.environ,
    local_file: Path = LOCAL_FILE,
) -> Connection:
    """Raises `SiftClientError` when nothing says where the service is, or no key is known for it.

    The local stack's key is only used for its own address, so that it never goes to another host.
    """
    url = url or environment.get("SIFT_URL") or None
    key = key or environment.get("SIFT_KEY") or None
    if url is None or key is None:
        local = _read_local(local_file)
        if local and (url is None or url.rstrip("/") == local.url):
            url, key = local.url, key or local.key
    if url is None:
        raise SiftClientError(
            "no sift service is known",
            "Set SIFT_URL and SIFT_KEY, or start a local stack with `sift local --site` in this folder.",
        )
    if key is None:
        raise SiftClientError(f"no key is known for {url}", "Set SIFT_KEY or pass --key.")
    if not _is_address(url):
        raise SiftClientError(f"{url!r} is not an address", "SIFT_URL starts with https:// (or http://127.0.0.1).")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise SiftClientError("the key has characters that no key has", "Copy it again: sift_<id>_<secret>.")
    return Connection(url.rstrip("/"), key)


def save_connection(connection: Connection, local_file: Path = LOCAL_FILE, *, table: LocalTable | None = None) -> None:
    """Let other terminals in this folder find a local stack; the file holds its key, so only its owner reads it."""
    local_file.parent.mkdir(parents=True, exist_ok=True)
    partial = local_file.with_name(local_file.name + ".partial")
    found: dict[str, Any] = {"url": connection.url, "key": connection.key}
    if table is not None:
        found["table"] = {"endpoint": table.endpoint, "name": table.name}
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(found, file)
    partial.replace(local_file)


def find_local_table(local_file: Path = LOCAL_FILE) -> LocalTable:
    """The table of the local stack that runs in this folder. Raises `SiftClientError` when none does."""
    found = _read_file(local_file)
    table = found.get("table") if isinstance(found, dict) else None
    if not isinstance(table, dict):
        raise SiftClientError("no local stack runs in this folder", "Start one here: sift local --site")
    return LocalTable(str(table.get("endpoint")), str(table.get("name")))


def forget_connection(connection: Connection, local_file: Path = LOCAL_FILE) -> None:
    """Remove the file of a local stack that ends, unless another stack has written its own since."""
    if _read_local(local_file) == connection:
        local_file.unlink(missing_ok=True)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _read_local(path: Path) -> Connection | None:
    found = _read_file(path)
    if found is None:
        return None
    try:
        return Connection(str(found["url"]).rstrip("/"), str(found["key"]))
    except (KeyError, TypeError):
        raise _unreadable(path) from None


def _read_file(path: Path) -> Any:
    """What the file of a local stack says; None: there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise _unreadable(path) from None


def _unreadable(path: Path) -> SiftClientError:
    return SiftClientError(
        f"{path} cannot be read",
        "Remove it and start the local stack again, or set SIFT_URL and SIFT_KEY.",
    )
