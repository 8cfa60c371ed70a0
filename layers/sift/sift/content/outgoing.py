"""The headers of one target's requests: the same over its redirects, but for what belongs to one origin or host."""

from __future__ import annotations

import email.message
import urllib.request
from collections.abc import Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

from sift.content.guard import CheckedUrl
from sift.request_headers import ALLOWED, CONDITIONS, CREDENTIALS

_DEFAULTS = {
    "accept": "text/html,application/xhtml+xml,application/pdf,application/json;q=0.9,*/*;q=0.8",
    "accept-language": "en,*;q=0.5",
}


class Outgoing:
    """Says what is sent to each URL of one target, in turn, and keeps the cookies that the answers set.

    `asked` are the caller's own headers, by lower-case name. Credentials among them go to the origin (scheme, host
    and port) of the first URL only, and to nobody once a redirect has left it.
    """

    def __init__(self, user_agent: str, codings: Sequence[str], asked: Mapping[str, str]) -> None:
        self._headers = {"user-agent": user_agent, **_DEFAULTS, **asked}
        self._codings = ", ".join(codings)
        # As browsers do: no cookie for the whole of co.uk, and one without a domain is for its host alone.
        policy = DefaultCookiePolicy(strict_domain=True, strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain)
        self._jar = CookieJar(policy)
        self._origin: tuple[str, str, int] | None = None

    @property
    def is_conditional(self) -> bool:
        """Whether an answer of 304 was asked for."""
        return not CONDITIONS.isdisjoint(self._headers)

    def headers_for(self, url: CheckedUrl) -> list[tuple[bytes, bytes]]:
        """What to send to `url`, Host apart."""
        origin = (url.scheme, url.host, url.port)
        if self._origin not in (None, origin):
            for name in CREDENTIALS:
                self._headers.pop(name, None)
        self._origin = origin
        values = {ALLOWED[name]: value for name, value in self._headers.items()}
        values["Accept-Encoding"] = self._codings
        cookies = _merge(values.get("Cookie", ""), self._kept_for(url))
        if cookies:
            values["Cookie"] = cookies
        return [(name.encode(), value.encode("latin-1")) for name, value in values.items()]

    def keep_cookies(self, url: CheckedUrl, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Take in the cookies of an answer from `url`; what it may not set is left out."""
        self._jar.extract_cookies(_Answer(headers), _ask(url))  # type: ignore[arg-type]

    def _kept_for(self, url: CheckedUrl) -> str:
        request = _ask(url)
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie") or ""


class _Answer:
    """As much of urllib's response as a cookie jar looks at."""

    def __init__(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._message: email.message.Message[Any, Any] = email.message.Message()
        for name, value in headers:
            if name.lower() == b"set-cookie":
                self._message["Set-Cookie"] = value.decode("latin-1")

    def info(self) -> email.message.Message[Any, Any]:
        return self._message


def _ask(url: CheckedUrl) -> urllib.request.Request:
    return urllib.request.Request(url.url)  # noqa: S310 (nothing is opened: the jar wants a request to look at)


def _merge(asked: str, kept: str) -> str:
    """A Cookie header of the caller's own and those that the site has set since, which win."""
    if not asked or not kept:
        return asked or kept
    names = {pair.partition("=")[0].strip() for pair in kept.split(";")}
    own = [pair.strip() for pair in asked.split(";") if pair.partition("=")[0].strip() not in names]
    return "; ".join([*own, kept])
