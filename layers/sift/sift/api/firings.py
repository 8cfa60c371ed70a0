"""Events that ask for a batch: from the stack's bus, and from EventBridge Scheduler."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from sift.api import problems
from sift.api.models import JobRequest
from sift.api.submissions import CheckWebhook, read_submission
from sift.errors import Invalid, RequestRefused
from sift.services.submit import Request

BATCH_REQUESTED = "Sift Batch Requested"

#: As Scheduler writes it in place of <aws.scheduler.scheduled-time>.
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})")
_NAME = re.compile(r"[!-~]{1,180}")


def read_firing(event: Any, check_webhook: CheckWebhook) -> Request:
    """The submission that an event asks for, its key the event's id or the schedule's time. Raises RequestRefused."""
    key, body = _read_event(event)
    if not isinstance(body, Mapping):
        raise bad_event("The batch is not an object.")
    try:
        job = JobRequest.model_validate(body)
    except ValidationError as error:
        found = [{**part, "loc": ("body", *part["loc"])} for part in error.errors()]
        raise problems.refuse_fields(found) from None
    return read_submission(job, key, check_webhook)


def _read_event(event: Any) -> tuple[str, Any]:
    """What tells this firing from the next, and the batch."""
    if not isinstance(event, Mapping):
        raise bad_event("The event is not an object.")
    if "detail-type" in event:
        if event["detail-type"] != BATCH_REQUESTED:
            raise bad_event(f"The event's detail-type is not {BATCH_REQUESTED!r}.")
        return f"event {_read_name(event, 'id')}", event.get("detail")
    if "scheduled_time" in event:
        if not isinstance(event["scheduled_time"], str) or not _TIME.fullmatch(event["scheduled_time"]):
            raise bad_event("scheduled_time is not a time: it is to be <aws.scheduler.scheduled-time>.")
        schedule = _read_name(event, "schedule") if "schedule" in event else ""
        return f"schedule {event['scheduled_time']} {schedule}", event.get("batch")
    raise bad_event("The event has neither a detail-type nor a scheduled_time.")


def _read_name(event: Mapping[str, Any], name: str) -> str:
    found = event.get(name)
    if not isinstance(found, str) or not _NAME.fullmatch(found):
        raise bad_event(f"The event's {name} is not 1 to 180 printable characters.")
    return found


def bad_event(detail: str) -> Invalid:
    """The refusal of what is no request for a batch."""
    return Invalid("bad_event", detail, "See events/schedule-batch.json and events/schedule-timer.json.")


def reason(error: RequestRefused) -> str:
    """Why a firing is refused, for the log and the dead letter: the code, and our own words or the places of fields.
    What stands in a field may be anything, and the whole event is in the dead letter."""
    fields = error.extra.get("fields")
    if not fields:
        return f"{error.code}: {error.detail}"
    places = [field["field"] for field in fields]
    return f"{error.code}: {', '.join(place if _PLACE.fullmatch(place) else 'a field' for place in places)}"


_PLACE = re.compile(r"[a-z_]{1,20}(?:\.(?:[0-9]{1,6}|[a-z_]{1,20})){0,4}")
