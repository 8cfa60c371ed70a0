"""What a response's head says: status as an outcome, Retry-After, Location, codings, and why a connection failed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urljoin

from sift.connections import causes, parse_retry_after
from sift.errors import TargetBusy, TargetFailed
from sift.request_headers import VALUE_CHARS

SUPPORTED_CODINGS = ("gzip", "br", "zstd", "deflate")
MAX_CODINGS = 2
NOT_MODIFIED = 304

# Passing troubles by their definition (RFC 9110, 6585, 8470; 52x are Cloudflare's for an origin that is away).
# 500 is not among them: a page that breaks its server breaks it again, unless the server says when to come back.
_BUSY = frozenset({408, 425, 429, 502, 503, 504, 520, 521, 522, 523, 524})
_NO_HOST = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//(?:[/?#]|$)|https?:/(?!/)", re.IGNORECASE)
_NAMES = {401: "It asks for credentials.", 403: "It refuses this reader.", 404: "There is no such page."}


def read_headers(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Values by lower-case name; those of one name are joined by commas. Bytes that are not UTF-8 are Latin-1."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1").lower()
        try:
            value = raw_value.decode()
        except UnicodeDecodeError:
            value = raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def check_status(status: int, headers: Mapping[str, str], now: datetime | None = None) -> None:
    """Let 2xx pass; raises TargetBusy for a passing trouble and TargetFailed http_error for the rest."""
    if 200 <= status < 300:
        return
    retry_after = parse_retry_after(headers.get("retry-after", ""), now or datetime.now(UTC))
    if status in _BUSY or (status >= 500 and retry_after is not None):
        raise TargetBusy(f"The server answered {status}.", retry_after=retry_after, status=status)
    hint = _NAMES.get(status, "Open the address in a browser to see what the server says.")
    raise TargetFailed("http_error", f"The server answered {status}.", hint, status=status)


def read_location(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """The Location header as text that the guard can judge, or None.

    UTF-8 stays characters; other bytes are percent-encoded as they are, which is what the server that
    sent them will understand. A space becomes %20; control characters and backslashes stay, and are refused.
    """
    value = next((value for name, value in headers if name.lower() == b"location"), b"").strip(b" \t")
    if not value:
        return None
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in value)
    if any(character < " " or character in "\x7f\\" for character in text):
        # Refused here, as urljoin would drop tabs and line ends in silence.
        raise _bad_redirect()
    return text.replace(" ", "%20")


def join(base: str, location: str) -> str:
    """The absolute address of a redirect. Raises TargetFailed invalid_url."""
    if _NO_HOST.match(location):
        # urljoin would stay on the host it has, and a browser take the next word for the host.
        raise _bad_redirect()
    try:
        return urljoin(base, location)
    except ValueError as error:
        raise _bad_redirect() from error


def _bad_redirect() -> TargetFailed:
    return TargetFailed(
        "invalid_url", "A redirect leads to an address that is not valid.", "Send the address that you want to reach."
    )


def read_codings(headers: Mapping[str, str]) -> list[str]:
    """The content codings to take off, in the order applied; more than two are refused, unknown names ignored."""
    names = [name.strip().lower() for name in headers.get("content-encoding", "").split(",")]
    codings = [name.removeprefix("x-") for name in names if name.removeprefix("x-") in SUPPORTED_CODINGS]
    if len(codings) > MAX_CODINGS:
        raise TargetFailed(
            "damaged",
            f"The body has more than {MAX_CODINGS} content codings.",
            "The site sent it so; try it again later.",
        )
    return codings


def read_validator(headers: Mapping[str, str], name: str) -> str | None:
    """ETag or Last-Modified, if it is one that a caller may send back as a condition."""
    value: str = headers.get(name, "").strip()
    return value if 0 < len(value) <= VALUE_CHARS and value.isascii() and value.isprintable() else None


def check_length(headers: Mapping[str, str], limit: int) -> None:
    """Refuse a body whose announced length is over the limit, before it is read."""
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:15]) > limit:
        raise too_large(f"The document is over {limit} bytes on the wire.")


def too_large(detail: str) -> TargetFailed:
    """The refusal of what is over a limit of bytes."""
    return TargetFailed("too_large", detail, "Only what is within the limits is read; look for a smaller version.")


def is_oversized(error: BaseException) -> bool:
    """Say whether a protocol library gave up on headers that are too long."""
    from h2.exceptions import DenialOfServiceError

    return any(
        isinstance(cause, DenialOfServiceError) or getattr(cause, "error_status_hint", None) == 431
        for cause in causes(error)
    )
