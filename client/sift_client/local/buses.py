"""Rules on the stack's event buses: what is put on a bus goes to the targets whose pattern it fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from moto.events.models import EventPattern

from sift_client.local.blueprint import RuleSpec
from sift_client.local.naming import REGION


class Buses:
    """Matches events by moto's own pattern engine and hands them on; `send` takes a target's ARN and JSON text."""

    def __init__(self, rules: list[RuleSpec], account: str, send: Callable[[str, str], None]) -> None:
        self._rules = [(rule, EventPattern(json.dumps(rule.pattern), rule.pattern)) for rule in rules]
        self._account = account
        self._send = send

    def deliver(self, entries: list[dict[str, Any]], results: list[dict[str, Any]]) -> None:
        """Takes the entries of a PutEvents call and its results; refused entries go nowhere."""
        for entry, result in zip(entries, results, strict=True):
            if "EventId" not in result:
                continue
            event = self._make_event(entry, result["EventId"])
            bus = str(entry.get("EventBusName") or "default").rsplit("/", 1)[-1]
            for rule, pattern in self._rules:
                if rule.bus == bus and pattern.matches_event(event):  # type: ignore[arg-type]
                    for arn, constant in rule.targets:
                        self._send(arn, json.dumps(event if constant is None else constant))

    def _make_event(self, entry: dict[str, Any], event_id: str) -> dict[str, Any]:
        moment = datetime.fromtimestamp(entry["Time"], UTC) if "Time" in entry else datetime.now(UTC)
        return {
            "version": "0",
            "id": event_id,
            "detail-type": entry["DetailType"],
            "source": entry["Source"],
            "account": self._account,
            "time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": REGION,
            "resources": entry.get("Resources") or [],
            "detail": json.loads(entry["Detail"]),
        }
