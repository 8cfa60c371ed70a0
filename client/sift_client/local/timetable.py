"""When a schedule fires: `rate(...)` and `cron(...)` expressions of EventBridge, in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sift_client.local.errors import TemplateError

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)(s?)\)")
_UNITS = {"minute": 60, "hour": 3600, "day": 86400}
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]

Next = Callable[[datetime], datetime]


def read_expression(expression: str) -> Next:
    """A function from a time to the first firing after it.

    Raises TemplateError for what EventBridge refuses, and for cron's L, W and # which are not supported here.
    """
    rate = _RATE.fullmatch(expression)
    if rate:
        count, unit, plural = int(rate[1]), rate[2], bool(rate[3])
        if count < 1 or plural == (count == 1):
            raise TemplateError(f"schedule {expression}: EventBridge wants `minute` for 1 and `minutes` for more")
        step = timedelta(seconds=count * _UNITS[unit])
        return lambda after: after + step
    if expression.startswith("cron(") and expression.endswith(")"):
        return _read_cron(expression, expression[5:-1].split())
    raise TemplateError(f"schedule {expression}: only rate(...) and cron(...) are supported by the local stack")


def _read_cron(expression: str, fields: list[str]) -> Next:
    if len(fields) != 6 or (fields[2] == "?") == (fields[4] == "?"):
        raise TemplateError(f"schedule {expression}: cron takes six fields, and `?` for one of the two kinds of day")
    minutes, hours, days, months, weekdays, years = (
        _read_field(expression, field, low, high, names)
        for field, (low, high, names) in zip(
            fields, [(0, 59, []), (0, 23, []), (1, 31, []), (1, 12, _MONTHS), (1, 7, _DAYS), (1970, 2199, [])],
            strict=True,
        )
    )  # fmt: skip

    def find_next(after: datetime) -> datetime:
        moment = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        while moment.year <= max(years):
            day_fits = moment.day in days and moment.isoweekday() % 7 + 1 in weekdays
            if not (moment.year in years and moment.month in months and day_fits):
                moment = moment.replace(hour=0, minute=0) + timedelta(days=1)
            elif moment.hour not in hours:
                moment = moment.replace(minute=0) + timedelta(hours=1)
            elif moment.minute not in minutes:
                moment += timedelta(minutes=1)
            else:
                return moment
        return datetime.max.replace(tzinfo=UTC)

    return find_next


def _read_field(expression: str, text: str, low: int, high: int, names: list[str]) -> set[int]:
    def read_number(part: str) -> int:
        number = names.index(part.upper()) + low if part.upper() in names else int(part)
        if not low <= number <= high:
            raise ValueError(part)
        return number

    chosen: set[int] = set()
    try:
        for part in text.split(","):
            span, _, step = part.partition("/")
            if span in ("*", "?"):
                first, last = low, high
            elif "-" in span:
                first, last = (read_number(end) for end in span.split("-"))
            else:
                first = read_number(span)
                last = high if step else first
            chosen.update(range(first, last + 1, int(step) if step else 1))
    except ValueError:
        raise TemplateError(f"schedule {expression}: field {text!r} is not supported by the local stack") from None
    return chosen
