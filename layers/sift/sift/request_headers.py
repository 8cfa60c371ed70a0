"""Which headers a caller may have sent with a target, and what is careful about them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: By lower-case name, as they are sent. What says how the message is framed or routed (Host, Connection, Content-*,
#: Transfer-Encoding, Proxy-*), who sent it (Forwarded, X-Forwarded-*) or how it is coded (Accept-Encoding, Range) is
#: not the caller's to say.
ALLOWED: Mapping[str, str] = {
    name.lower(): name
    for name in (
        "User-Agent",
        "Accept",
        "Accept-Language",
        "Authorization",
        "Cache-Control",
        "Cookie",
        "DNT",
        "If-Modified-Since",
        "If-None-Match",
        "Pragma",
        "Referer",
        "Sec-GPC",
    )
}
#: Sent to the origin of the target only, and never shown.
CREDENTIALS = frozenset({"authorization", "cookie"})
#: What makes 304 an answer.
CONDITIONS = frozenset({"if-none-match", "if-modified-since"})

#: Common servers take 8 KiB for a header line or for all of them (nginx, Apache, AWS load balancers).
VALUE_CHARS = 4_096
TOTAL_CHARS = 8_192

_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")  # RFC 9110, less tabs and what is not ASCII


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers by lower-case name. Raises ValueError that names the first wrong one, and never shows a value."""
    checked: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        if key not in ALLOWED:
            raise ValueError(f"the header {name[:40]!r} can't be set; these can: {', '.join(ALLOWED.values())}")
        if key in checked:
            raise ValueError(f"the header {ALLOWED[key]} is there twice")
        if len(value) > VALUE_CHARS:
            raise ValueError(f"the header {ALLOWED[key]} is longer than {VALUE_CHARS} characters")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"the header {ALLOWED[key]} is not printable ASCII without spaces at its ends")
        checked[key] = value
    if sum(len(name) + len(value) for name, value in checked.items()) > TOTAL_CHARS:
        raise ValueError(f"the headers are longer than {TOTAL_CHARS} characters together")
    return checked


def without_credentials(options: Mapping[str, Any]) -> dict[str, Any]:
    """A target's options as they may be kept where nobody needs the credentials among its headers any more."""
    kept = dict(options)
    headers = {name: value for name, value in kept.pop("headers", {}).items() if name not in CREDENTIALS}
    return {**kept, "headers": headers} if headers else kept
