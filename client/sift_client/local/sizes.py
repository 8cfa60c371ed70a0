"""How large AWS counts things: DynamoDB items, SQS messages and EventBridge entries, in bytes.

Sources: "DynamoDB item sizes and formats" in the DynamoDB guide, "Message quotas" in the SQS guide,
"Calculating PutEvents event entry size" in the EventBridge guide.
"""

from __future__ import annotations

import base64
from typing import Any


def measure_item(item: dict[str, Any]) -> int:
    """Size of an item or key in DynamoDB's JSON: names and values, UTF-8."""
    return sum(len(name.encode()) + measure_value(value) for name, value in item.items())


def measure_value(value: dict[str, Any]) -> int:
    """Size of one attribute value in DynamoDB's JSON."""
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return _measure_number(content)
    if kind == "B":
        return _measure_binary(content)
    if kind in ("BOOL", "NULL"):
        return 1
    if kind == "SS":
        return sum(len(part.encode()) for part in content)
    if kind == "NS":
        return sum(map(_measure_number, content))
    if kind == "BS":
        return sum(map(_measure_binary, content))
    # Lists and maps: 3 bytes, and 1 for each element or pair.
    if kind == "L":
        return 3 + sum(1 + measure_value(part) for part in content)
    return 3 + sum(1 + len(name.encode()) + measure_value(part) for name, part in content.items())


def measure_message(entry: dict[str, Any]) -> int:
    """Size of an SQS message: its body, and each attribute's name, type and value."""
    size = len(entry.get("MessageBody", "").encode())
    for name, attribute in (entry.get("MessageAttributes") or {}).items():
        size += len(name.encode()) + len(attribute.get("DataType", "").encode())
        size += len((attribute.get("StringValue") or "").encode())
        size += _measure_binary(attribute.get("BinaryValue") or "")
    return size


def measure_event(entry: dict[str, Any]) -> int:
    """Size of a PutEvents entry."""
    texts = [
        entry.get("Source"),
        entry.get("DetailType"),
        entry.get("Detail"),
        *(entry.get("Resources") or []),
    ]
    return (14 if "Time" in entry else 0) + sum(len((text or "").encode()) for text in texts)


def _measure_number(text: str) -> int:
    # About one byte for two significant digits, and one more; a sign takes another.
    digits = text.lstrip("-").lower().split("e")[0].replace(".", "").strip("0")
    return 1 + (len(digits) + 1) // 2 + text.startswith("-")


def _measure_binary(content: str | bytes) -> int:
    return len(content) if isinstance(content, bytes) else len(base64.b64decode(content))
