"""What counted things cost: the price table of prices.toml, applied."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000


@dataclass(frozen=True)
class Other:
    """What another service asks for a million pages, in dollars, from its cheapest to its dearest."""

    name: str
    low: float
    high: float
    note: str
    date: str


@dataclass(frozen=True)
class Prices:
    """Dollars for one of each thing, by its name in prices.toml."""

    aws: Mapping[str, float]
    others: tuple[Other, ...]

    def cost(self, quantities: Mapping[str, float]) -> dict[str, float]:
        """Dollars by name. Raises KeyError for a name that has no price."""
        return {name: self.aws[name] * quantity for name, quantity in quantities.items()}


def read_prices(path: Path = TABLE) -> Prices:
    """The price table. Raises ValueError for a price that is no positive number."""
    document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, price in document["aws"].items():
        if not isinstance(price, float) or price <= 0:
            raise ValueError(f"{name}: {price!r} is not a price")
    others = tuple(Other(**{**entry, "date": str(entry["date"])}) for entry in document["others"])
    return Prices(document["aws"], others)


def per_million(dollars: float, targets: int) -> float:
    """Dollars for a million targets, when so many cost `dollars`."""
    return dollars * MILLION / targets
