"""A SAM template as read from its file: YAML with CloudFormation's short tags, and its parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sift_client.local.errors import TemplateError

SECTIONS = {
    "AWSTemplateFormatVersion", "Transform", "Description", "Metadata", "Parameters", "Rules", "Mappings",
    "Conditions", "Globals", "Resources", "Outputs",
}  # fmt: skip


class _Loader(yaml.SafeLoader):
    """Safe YAML that also reads `!Ref X` and its kin."""


def _read_tag(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if suffix in ("Ref", "Condition"):
        return {suffix: value}
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _read_tag)
# Dates stay text: CloudFormation knows no dates, and policy versions look like them.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class Document:
    """A template with its parameters decided; nothing in it is resolved yet."""

    path: Path
    body: dict[str, Any]
    parameters: dict[str, Any]

    @property
    def root(self) -> Path:
        """The folder that CodeUri and ContentUri are relative to."""
        return self.path.parent

    def section(self, name: str) -> dict[str, Any]:
        """One top-level section, empty when the template has none."""
        return self.body.get(name) or {}


def find_template() -> Path:
    """The template of the current folder, else of the checkout that this file is in."""
    here = Path("template.yaml")
    return here if here.is_file() else Path(__file__).resolve().parents[3] / "template.yaml"


def read_document(path: Path, overrides: dict[str, str] | None = None) -> Document:
    """Read a template and decide its parameters: `overrides` (name to text) before the defaults.

    Raises TemplateError for a file that is no template and for a parameter that is unknown, missing or out of bounds.
    """
    try:
        body = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader with tags that give plain data
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise TemplateError(f"{path}: not readable as a template: {error}") from error
    if not isinstance(body, dict) or not isinstance(body.get("Resources"), dict):
        raise TemplateError(f"{path}: a template needs a Resources section")
    unknown = set(body) - SECTIONS
    if unknown:
        raise TemplateError(f"{path}: unknown sections {sorted(unknown)}")
    if body.get("Mappings"):
        raise TemplateError(f"{path}: Mappings are not supported by the local stack")
    return Document(path, body, _decide_parameters(body.get("Parameters") or {}, overrides or {}))


def _decide_parameters(declared: dict[str, Any], overrides: dict[str, str]) -> dict[str, Any]:
    unknown = set(overrides) - set(declared)
    if unknown:
        raise TemplateError(f"unknown parameters {sorted(unknown)}; the template has {sorted(declared)}")
    decided = {}
    for name, definition in declared.items():
        value = overrides.get(name, definition.get("Default"))
        if value is None:
            raise TemplateError(f"parameter {name} has no default and no value")
        decided[name] = _check_parameter(name, definition, value)
    return decided


def _check_parameter(name: str, definition: dict[str, Any], value: Any) -> Any:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    allowed = definition.get("AllowedValues")
    if allowed is not None and text not in {str(option) for option in allowed}:
        raise TemplateError(f"parameter {name}: {text!r} is not one of {allowed}")
    kind = definition.get("Type")
    if kind == "Number":
        try:
            number = float(text)
        except ValueError:
            raise TemplateError(f"parameter {name}: {text!r} is not a number") from None
        low, high = definition.get("MinValue"), definition.get("MaxValue")
        if (low is not None and number < float(low)) or (high is not None and number > float(high)):
            raise TemplateError(f"parameter {name}: {text} is not within {low}..{high}")
    elif kind == "CommaDelimitedList":
        return [part.strip() for part in text.split(",")]
    elif kind != "String":
        raise TemplateError(f"parameter {name}: type {kind} is not supported by the local stack")
    pattern = definition.get("AllowedPattern")
    if pattern is not None and not re.fullmatch(pattern, text):
        raise TemplateError(f"parameter {name}: {text!r} does not match {pattern}")
    # CloudFormation hands every parameter on as text, numbers too.
    return text
