"""A web archive on loopback, as the Wayback Machine answers: an availability API, and replays with `id_`."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.integration.content.loopback import Loopback, respond

MOMENT = "20240203040506"

_PROSE = "The lighthouse was lit for the last time in the spring, and its keeper wrote down the hour in the book. "
_TEXT = f"{_PROSE * 3}He left <a href='../x'>the island</a>. {_PROSE}"
#: A page that may be captured.
BODY = f"<html><body><article><h1>Last light</h1><p>{_TEXT}</p></article></body></html>".encode()


class Wayback:
    """`api` and `replay` are the bases to set; `asked` and `replayed` are the paths that came in."""

    def __init__(self) -> None:
        self.server = Loopback()
        self.api = self.server.url("/wayback/available")
        self.replay = self.server.url("/web")
        self.allow = self.server.allow

    def announce(self, page: str, answer: Any = None, **closest: Any) -> None:
        """What the availability API says of a page: a whole answer (bytes, pieces or JSON), or a capture's fields."""
        if answer is None:
            # The address is not used: a real one is rewritten HTML, and anybody's could lead anywhere.
            found = {"available": True, "url": "http://127.0.0.1:9/evil", "timestamp": MOMENT, "status": "200"}
            answer = {"url": page, "archived_snapshots": {"closest": found | closest}}
        if isinstance(answer, dict):
            answer = respond(json.dumps(answer).encode(), content_type="application/json")
        self.server.routes[f"/wayback/available?url={quote(page, safe='')}"] = answer

    def path(self, page: str, moment: str = MOMENT, flag: str = "id_") -> str:
        return f"/web/{moment}{flag}/{page}"

    def capture(self, page: str, body: bytes, *, moment: str = MOMENT, **answer: Any) -> None:
        """A capture at a moment, as it was answered then."""
        self.server.routes[self.path(page, moment)] = respond(body, **answer)

    def redirect(self, page: str, location: str, moment: str = MOMENT) -> None:
        self.server.routes[self.path(page, moment)] = respond(status=302, headers=(f"Location: {location}",))

    @property
    def asked(self) -> list[str]:
        return [path for path in self.server.paths() if path.startswith("/wayback/")]

    @property
    def replayed(self) -> list[str]:
        return [path for path in self.server.paths() if path.startswith("/web/")]
