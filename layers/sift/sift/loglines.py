"""How the functions write log lines: JSON with the ids of `sift.logs`, and exceptions without what they say."""

from __future__ import annotations

import copy
import errno
import functools
import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from botocore.exceptions import ClientError

from sift import logs
from sift.errors import SiftError

Handler = Callable[[dict[str, Any], Any], Any]

#: They write requests and answers down at DEBUG, with all that is in them, and addresses at INFO.
TALKATIVE = ("aws_lambda_powertools", "boto3", "botocore", "s3transfer", "urllib3")
#: An exception's chain is followed so far.
MOST_LINKS = 10

_log = logging.getLogger(__name__)


class Failed(Exception):
    """What Lambda is told of an invocation that failed; it prints that, so only our own words are in it."""


def make_logger() -> Logger:
    """The logger of a function. It takes in the lines of all modules of sift, being named like the package."""
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    return Logger(logger_formatter=Formatter(serialize_stacktrace=False))


def reported(handler: Handler) -> Handler:
    """The handler, with whatever escapes it on a line of the log, and raised again without what it says."""

    @functools.wraps(handler)
    def guarded(event: dict[str, Any], context: Any) -> Any:
        try:
            return handler(event, context)
        except Failed as error:
            _log.error("the invocation failed: %s", error)
            raise
        except Exception as error:  # noqa: BLE001 - Lambda would print it with its message, whatever that holds
            _log.error("the invocation failed", exc_info=error)
            raise Failed(error.detail if isinstance(error, SiftError) else type(error).__name__) from None

    return guarded


class Formatter(LambdaPowertoolsFormatter):
    """Lines as Powertools writes them, with the ids of `sift.logs`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; the exception is in `exception` and `exception_name`."""
        line = copy.copy(record)
        vars(line).update({name: value for name, value in logs.subject().items() if name not in vars(record)})
        error = record.exc_info[1] if record.exc_info else None
        line.exc_info = line.exc_text = None
        if error is not None:
            vars(line).update(exception=describe(error), exception_name=type(error).__name__)
        return super().format(line)


def describe(error: BaseException) -> str:
    """The chain of an exception, the outermost first: names, codes and places in the source, no messages.

    Messages may hold anything: a URL with its query, the input that a parser choked on, a request with its items.
    """
    lines: list[str] = []
    for link in _chain(error):
        lines.append(_name(link))
        frames = traceback.extract_tb(link.__traceback__)
        lines += [f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return "\n".join(lines)


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < MOST_LINKS:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions
        following = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if following is not None:
            waiting.append(following)


def _name(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    if isinstance(error, SiftError):
        return f"{name} ({error.code})"
    if isinstance(error, ClientError):
        return f"{name} ({error.response.get('Error', {}).get('Code')} of {error.operation_name})"
    if isinstance(error, OSError) and error.errno is not None:
        return f"{name} ({errno.errorcode.get(error.errno, error.errno)})"
    return name
