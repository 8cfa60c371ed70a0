"""The bus on EventBridge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sift import aws
from sift.errors import Unavailable


class EventBridgeBus:
    """`client` is a boto3 EventBridge client; events have the source `sift`."""

    def __init__(self, client: Any, bus: str) -> None:
        self._client = client
        self._bus = bus

    async def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        entry = {
            "EventBusName": self._bus,
            "Source": "sift",
            "DetailType": detail_type,
            "Detail": json.dumps(detail, separators=(",", ":"), ensure_ascii=False),
        }
        answer = await aws.call(self._client.put_events, Entries=[entry])
        if answer["FailedEntryCount"]:
            raise Unavailable(f"publish: {answer['Entries'][0].get('ErrorCode')}")
