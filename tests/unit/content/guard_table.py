"""The table of URLs that a guard must allow or block, and the names in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PUBLIC = "93.184.215.14"
NAMES = {
    "public.test": [PUBLIC],
    "xn--bcher-kva.test": [PUBLIC],
    "rebind-loop.test": ["127.0.0.1"],
    "meta.test": ["169.254.169.254"],
    "metadata.google.internal": ["169.254.169.254"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "v6priv.test": [PUBLIC, "fd00:ec2::254"],
}


class TableResolver:
    """Answers from the table; `flip.test` moves to the metadata address after its first answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host == "flip.test":
            return [PUBLIC] if self.asked.count(host) == 1 else ["169.254.169.254"]
        if host not in NAMES:
            raise OSError("no such name")
        return NAMES[host]


def cases() -> list[tuple[str, str, str]]:
    """Each row as name, URL, and `allow` or `block`."""
    rows = []
    for line in (Path(__file__).parent / "guard_cases.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, url, expect = line.split("\t")[:3]
            rows.append((name, url.replace("\\t", "\t").replace("\\n", "\n"), expect))
    return rows
