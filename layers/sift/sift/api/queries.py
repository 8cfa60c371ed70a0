"""Query parameters and indexes: taken as they are written, and refused where a route does not know them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

#: Pydantic alone would also take `+1`, `01`, `1_0`, ` 1` and `1.0` for a number.
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def read_index(text: str) -> int | None:
    """The index that a text is, in the one way to write it; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) and text[0] != "-" else None


def _check_number(value: Any) -> Any:
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise PydanticCustomError("bad_number", "is not a whole number in plain digits")
    return value


def _check_flag(value: Any) -> Any:
    if isinstance(value, str) and value not in {"true", "false"}:
        raise PydanticCustomError("bad_flag", "is neither true nor false")
    return value


#: For an integer of a path or query, after its bounds.
PLAIN_NUMBER = BeforeValidator(_check_number)
#: For a truth value of a query.
PLAIN_FLAG = BeforeValidator(_check_flag)


def refuse_unknown(app: Any, go_on: Callable[[Any], Any]) -> Any:
    """A middleware. Raises RequestValidationError that names each parameter which the route does not take."""
    if "identity" not in app.context:  # a public route: whatever probes and browsers add is no matter there
        return go_on(app)
    known = {parameter.alias for parameter in app.context["_route"].dependant.query_params}
    unknown = sorted(set(app.current_event.resolved_query_string_parameters) - known)
    if unknown:
        raise RequestValidationError(
            [
                {"loc": ("query", name), "type": "extra_forbidden", "msg": "is not a parameter of this route"}
                for name in unknown
            ]
        )
    return go_on(app)
