"""Memory that a library has freed, back to the system: what comes next in the same child then counts by itself."""

from __future__ import annotations

import ctypes

#: Below this many characters of a page there is little to give back, and the call costs a millisecond.
LARGE_PAGE = 500_000


def give_back() -> None:
    """Return free pages within the heap (glibc; elsewhere nothing happens)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
