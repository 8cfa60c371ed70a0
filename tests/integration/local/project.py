"""A small template and its functions in a folder, and what a test does with its running stack."""

from __future__ import annotations

import json
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sift_client.local import LocalStack


@dataclass
class Project:
    """A template under construction."""

    root: Path
    body: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.body = {
            "Transform": "AWS::Serverless-2016-10-31",
            "Globals": {"Function": {"Runtime": "python3.13", "Handler": "app.lambda_handler", "Timeout": 5}},
            "Resources": {},
        }

    def add(self, logical_id: str, kind: str, **properties: Any) -> None:
        """A resource as it is."""
        self.body["Resources"][logical_id] = {"Type": kind, "Properties": properties}

    def add_function(self, logical_id: str, source: str, **properties: Any) -> None:
        """A function whose app.py is `source`."""
        folder = self.root / "functions" / logical_id
        folder.mkdir(parents=True)
        (folder / "app.py").write_text(textwrap.dedent(source))
        self.add(logical_id, "AWS::Serverless::Function", CodeUri=f"functions/{logical_id}/", **properties)

    def add_table(self, logical_id: str = "Table") -> None:
        """A table with keys `pk` and `sk`."""
        keys = [("pk", "HASH"), ("sk", "RANGE")]
        self.add(
            logical_id,
            "AWS::DynamoDB::Table",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        )

    def write(self) -> Path:
        """The template's path."""
        path = self.root / "template.yaml"
        path.write_text(yaml.safe_dump(self.body))
        return path


Start = Callable[..., LocalStack]


def http_event(method: str = "ANY", path: str = "/{proxy+}", **more: Any) -> dict[str, Any]:
    """The Events of a function with one route."""
    return {"Route": {"Type": "HttpApi", "Properties": {"Method": method, "Path": path, **more}}}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Any
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def request(url: str, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None) -> Reply:
    """One HTTP request, whatever its status."""
    asked = urllib.request.Request(url, data=body, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(asked, timeout=240) as answer:
            return Reply(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Reply(error.code, error.headers, error.read())


def wait_for(check: Callable[[], Any], seconds: float = 120) -> Any:
    """What `check` gives as soon as it is true."""
    end = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < end, f"never came true: {check}"
        time.sleep(0.02)
