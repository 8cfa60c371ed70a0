"""Pages that React streams: what came late stands hidden at their end, until a script puts it in its place."""

from __future__ import annotations

import re
from typing import Any

# Calls of its own functions in the page, such as $RC("B:0","S:3") and $RS("S:4","P:4"); S is what came late.
_CALL = re.compile(r'\$R[A-Z]\("((?:[\w-]{0,40})[BPS]:[0-9a-f]{1,8})","((?:[\w-]{0,40})[BPS]:[0-9a-f]{1,8})"')
MAX_CALLS = 1_000


def join_streamed(html: str) -> str:
    """The page with all that came late in its place; most pages are given back as they are."""
    calls = [match.groups() for match in _CALL.finditer(html)][:MAX_CALLS] if '"S:' in html else []
    if not calls:
        return html
    import turbohtml

    document = turbohtml.parse(html, positions=False)
    named = {str(node.attrs.get("id")): node for node in document.find_all(["template", "div"]) if "id" in node.attrs}
    moved = False
    for one, other in calls:
        late, place = (named.get(name) for name in ((other, one) if "S:" in other else (one, other)))
        if late is None or place is None or place.parent is None or _holds(late, place):
            continue
        place.replace_with(late)
        late.attrs.pop("hidden", None)
        moved = True
    return str(document.serialize()) if moved else html


def _holds(element: Any, other: Any) -> bool:
    """Whether the other stands in the element, or is it."""
    return element is other or any(above is element for above in other.ancestors)
