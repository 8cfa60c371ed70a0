"""What a robots.txt says of one address; runs in a child, for its patterns are the site's own."""

from __future__ import annotations

from typing import Any


def judge(head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """In a child: whether the file allows the agent this address."""
    from protego import Protego

    # UTF-8 by RFC 9309; some are saved with the mark of another form, and none of their lines could be read.
    form = "utf-16" if body[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    text = body.decode(form, "replace").replace("\0", "")
    allowed = Protego.parse(text).can_fetch(head["url"], head["agent"])
    return {"content_type": "text/plain", "meta": {"allowed": bool(allowed)}}, b""
