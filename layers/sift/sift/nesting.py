"""How deep JSON may be nested."""

from __future__ import annotations

from typing import Any

#: Objects and lists within each other. Python's readers and writers of JSON give up at about a thousand, less the
#: calls that they are inside of: what one of them takes, another need not, so nobody is to come near that.
MAX_LEVELS = 200


def is_deep(value: Any) -> bool:
    """Whether it has more levels than it may. It looks level by level: a call for each would give up as well."""
    level = [value]
    for _ in range(MAX_LEVELS + 1):
        nests = [one for one in level if isinstance(one, (dict, list))]
        if not nests:
            return False
        level = [one for nest in nests for one in (nest.values() if isinstance(nest, dict) else nest)]
    return True
