"""What connections to the servers of others have in common: certificates, quiet libraries, and what goes wrong."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_S = 86_400.0

# At DEBUG these write headers down, credentials among them, and at INFO whole addresses.
for _name in ("hpack", "h2", "httpcore2", "httpx2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


def make_tls_context(ca_file: str | None) -> ssl.SSLContext:
    """The certificates that connections are checked against: the bundled ones, or those of a file."""
    import certifi

    # A file by name: OpenSSL's default paths can be turned by the environment.
    return ssl.create_default_context(cafile=ca_file or certifi.where())


def parse_retry_after(value: str, now: datetime) -> float | None:
    """Seconds from a Retry-After header (a number or an HTTP date), 0 to a day; None when it says nothing."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max((moment - now).total_seconds(), 0.0), MAX_RETRY_AFTER_S)


def is_tls_failure(error: BaseException) -> bool:
    """Say whether a TLS error is behind this one."""
    return any(isinstance(cause, ssl.SSLError) for cause in causes(error))


def is_broken_off(error: BaseException) -> bool:
    """Say whether a TLS connection ended without being closed, which is no fault of a certificate."""
    return any(isinstance(cause, ssl.SSLEOFError) for cause in causes(error))


def is_refused(error: BaseException) -> bool:
    """Say whether the server refused the connection."""
    return _has_errno(error, errno.ECONNREFUSED)


def is_reset(error: BaseException) -> bool:
    """Say whether the server reset the connection, at whatever point."""
    return _has_errno(error, errno.ECONNRESET, errno.EPIPE)


def is_unresolved(error: BaseException) -> bool:
    """Say whether the host's name has no address."""
    return any(isinstance(cause, socket.gaierror) for cause in causes(error))


def is_unanswered(error: BaseException) -> bool:
    """Say whether the name servers gave no answer for the host, which may pass."""
    return any(isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN for cause in causes(error))


def _has_errno(error: BaseException, *numbers: int) -> bool:
    return any(isinstance(cause, OSError) and cause.errno in numbers for cause in causes(error))


def causes(error: BaseException) -> list[BaseException]:
    """The exception and everything behind it."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or cause in found:
            continue
        found.append(cause)
        waiting += [cause.__cause__, cause.__context__]
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions
    return found
