"""Documents as they are kept, in the table or in the bucket."""

from __future__ import annotations

import json
import zlib
from typing import Any


def pack(document: Any) -> bytes:
    """JSON, compressed with zlib."""
    return zlib.compress(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode(), 6)


def unpack(data: bytes) -> Any:
    """The inverse of `pack`."""
    return json.loads(zlib.decompress(data))
