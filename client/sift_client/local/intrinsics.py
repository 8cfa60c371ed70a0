"""CloudFormation's functions (`Ref`, `Fn::Sub`, `Fn::If` ...) and conditions, evaluated on plain data."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, Protocol

from sift_client.local.document import Document
from sift_client.local.errors import TemplateError

NO_VALUE = object()
_PLACE = re.compile(r"\$\{(!?)([^}]+)\}")


class References(Protocol):
    """What `Ref` and `GetAtt` of a resource stand for."""

    def ref(self, logical_id: str) -> Any: ...

    def attribute(self, logical_id: str, name: str) -> Any: ...


class Resolver:
    """Evaluates functions against a document, its parameters and what its resources are called.

    `resolve` raises TemplateError for a function, name or condition it does not know: a value that was left
    unresolved would only fail later and elsewhere.
    """

    def __init__(self, document: Document, pseudo: dict[str, str], references: References) -> None:
        self._conditions = document.section("Conditions")
        self._values: dict[str, Any] = {**pseudo, **document.parameters}
        self._references = references
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Condition": self.holds,
            "Fn::GetAtt": self._get_attribute,
            "Fn::Sub": self._substitute,
            "Fn::If": self._choose,
            "Fn::Join": lambda v: str(v[0]).join(str(part) for part in self.resolve(v[1])),
            "Fn::Split": lambda v: str(self.resolve(v[1])).split(v[0]),
            "Fn::Select": lambda v: self.resolve(v[1])[int(self.resolve(v[0]))],
            "Fn::Base64": lambda v: base64.b64encode(str(self.resolve(v)).encode()).decode(),
            "Fn::ToJsonString": lambda v: json.dumps(self.resolve(v)),
            "Fn::Equals": lambda v: _as_text(self.resolve(v[0])) == _as_text(self.resolve(v[1])),
            "Fn::Not": lambda v: not self._truth(v[0]),
            "Fn::And": lambda v: all(self._truth(part) for part in v),
            "Fn::Or": lambda v: any(self._truth(part) for part in v),
            "Fn::Contains": lambda v: self.resolve(v[1]) in self.resolve(v[0]),
        }

    def resolve(self, value: Any) -> Any:
        """The value with every function in it evaluated; keys and list entries that are AWS::NoValue are left out."""
        if isinstance(value, dict):
            if len(value) == 1:
                ((key, argument),) = value.items()
                if key in self._functions and (key != "Condition" or isinstance(argument, str)):
                    return self._functions[key](argument)
                if str(key).startswith("Fn::"):
                    raise TemplateError(f"{key} is not supported by the local stack")
            resolved = {key: self.resolve(inner) for key, inner in value.items()}
            return {key: inner for key, inner in resolved.items() if inner is not NO_VALUE}
        if isinstance(value, list):
            return [inner for inner in map(self.resolve, value) if inner is not NO_VALUE]
        return value

    def holds(self, condition: str) -> bool:
        """Whether a condition of the template is true."""
        if condition not in self._conditions:
            raise TemplateError(f"unknown condition {condition}")
        return self._truth(self._conditions[condition])

    def _truth(self, value: Any) -> bool:
        result = self.resolve(value)
        if not isinstance(result, bool):
            raise TemplateError(f"not a condition: {value}")
        return result

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self._values:
            return self._values[name]
        return self._references.ref(name)

    def _get_attribute(self, value: list[str]) -> Any:
        return self._references.attribute(value[0], value[1])

    def _choose(self, value: list[Any]) -> Any:
        return self.resolve(value[1] if self.holds(value[0]) else value[2])

    def _substitute(self, value: str | list[Any]) -> str:
        text, extra = (value, {}) if isinstance(value, str) else (value[0], self.resolve(value[1]))

        def replace(match: re.Match[str]) -> str:
            literal, name = match.groups()
            if literal:
                return f"${{{name}}}"
            if name in extra:
                return _as_text(extra[name])
            if "." in name:
                return _as_text(self._get_attribute(name.split(".", 1)))
            return _as_text(self._ref(name))

        return _PLACE.sub(replace, text)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
