"""One block of properties of a template, read so that nothing in it is passed over in silence."""

from __future__ import annotations

from typing import Any

from sift_client.local.blueprint import Blueprint
from sift_client.local.errors import TemplateError
from sift_client.local.intrinsics import NO_VALUE, Resolver


class Properties:
    """Properties of the resource or event called `where`; what is neither taken nor known to be inert is reported."""

    def __init__(self, where: str, raw: dict[str, Any] | None, resolver: Resolver, blueprint: Blueprint) -> None:
        self.where = where
        self._rest = dict(raw or {})
        self._resolver = resolver
        self._blueprint = blueprint

    def take(self, name: str, default: Any = None) -> Any:
        """The resolved value of a property, or the default where it is absent or AWS::NoValue."""
        if name not in self._rest:
            return default
        value = self._resolver.resolve(self._rest.pop(name))
        return default if value is NO_VALUE else value

    def need(self, name: str) -> Any:
        """The resolved value of a property that must be there."""
        value = self.take(name, NO_VALUE)
        if value is NO_VALUE:
            raise TemplateError(f"{self.where}: {name} is missing")
        return value

    def number(self, name: str, default: int | None, low: int, high: int) -> int | None:
        """A whole number within AWS's bounds, or the default."""
        value = self.take(name)
        if value is None:
            return default
        try:
            number = int(str(value))
        except ValueError:
            raise TemplateError(f"{self.where}: {name} {value!r} is not a whole number") from None
        if not low <= number <= high:
            raise TemplateError(f"{self.where}: {name} {number} is not within {low}..{high}")
        return number

    def flag(self, name: str, default: bool) -> bool:
        """A yes or no, written as a boolean or as text."""
        value = self.take(name)
        return default if value is None else str(value).lower() == "true"

    def block(self, name: str) -> Properties:
        """A nested block as properties of its own; close it too."""
        value = self.take(name) or {}
        if not isinstance(value, dict):
            raise TemplateError(f"{self.where}: {name} must be a mapping")
        return Properties(f"{self.where}.{name}", value, self._resolver, self._blueprint)

    def inert(self, *names: str) -> None:
        """Notes the properties that are understood but change nothing here; they are not even resolved."""
        for name in names:
            if name in self._rest:
                del self._rest[name]
                self._blueprint.inert.append(f"{self.where}: {name}")

    def close(self) -> None:
        """Reports what is left."""
        self._blueprint.unknown.extend(f"{self.where}: {name}" for name in self._rest)
        self._rest = {}
