"""What a robots.txt says of one address; runs in a child, for its patterns are the site's own."""

from __future__ import annotations

from typing import Any


def judge(head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """In a child: whether the file allows the agent this address."""
    from protego import Protego

    text = body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\0", "")
    allowed = Protego.parse(text).can_fetch(head["url"], head["agent"])
    return {"content_type": "text/plain", "meta": {"allowed": bool(allowed)}}, b""
