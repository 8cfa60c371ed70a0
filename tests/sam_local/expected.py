"""What an event of events/ comes to when its function runs in a container on a local stack that is new.

An event is run as it stands, but for its key, which is one of the stack's. Its job is none of the stack's.
"""

from __future__ import annotations

from typing import Any

#: Status of the answer to an event of the HTTP API. Any other must be answered as well, and not by a fault.
STATUSES = {"api-healthz": 200, "api-submit": 202, "api-status": 404, "api-targets": 404, "api-cancel": 404}


def find_fault(name: str, event: Any, answer: Any) -> str | None:
    """What is wrong with a function's answer to the event of that name."""
    if name.startswith("schedule-"):
        # The stack has no key for events, and the function says so rather than submit as anybody else.
        return None if "EventKeyId is empty" in str(answer) else f"answered {answer}"
    if isinstance(answer, dict) and "errorType" in answer:
        return f"the function failed: {answer}"
    if "routeKey" in event:
        status = answer["statusCode"]
        # 502 to 504 are what a site on the internet made of it, which is not known here.
        fine = status == STATUSES[name] if name in STATUSES else status not in (401, 500)
        return None if fine else f"answered {answer}"
    if "Records" in event and answer != {"batchItemFailures": []}:
        # The job of its messages is not there, and what is no message was moved away: nothing stays on the queue.
        return f"messages stay on the queue: {answer}"
    return None
