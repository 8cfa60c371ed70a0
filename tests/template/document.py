"""template.yaml as plain data: long-form intrinsics, functions with their Globals, conditions worked out."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cfnlint.decode import cfn_yaml

ROOT = Path(__file__).parents[2]
NO_VALUE = {"Ref": "AWS::NoValue"}

Template = dict[str, Any]


def load(path: Path = ROOT / "template.yaml") -> Template:
    """Read a template; `!Ref x` comes out as {"Ref": "x"}, `!GetAtt a.b` as {"Fn::GetAtt": ["a", "b"]}."""
    plain: Template = json.loads(_read(path.read_text(encoding="utf-8")))
    return plain


@functools.cache
def _read(text: str) -> str:
    return json.dumps(cfn_yaml.loads(text))


def resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    """Resources of one type by logical id."""
    return {name: found for name, found in template["Resources"].items() if found["Type"] == kind}


def functions(template: Template) -> dict[str, dict[str, Any]]:
    """Properties of every function by logical id, with what Globals adds to them."""
    shared = template["Globals"]["Function"]
    return {
        name: _merge(shared, found["Properties"])
        for name, found in resources(template, "AWS::Serverless::Function").items()
    }


def _merge(shared: Any, own: Any) -> Any:
    """SAM's rule: maps are merged, lists joined, and a function's own value wins."""
    if isinstance(shared, dict) and isinstance(own, dict) and "Ref" not in own:
        merged = {**shared, **own}
        return {k: _merge(shared[k], own[k]) if k in shared and k in own else merged[k] for k in merged}
    if isinstance(shared, list) and isinstance(own, list):
        return shared + own
    return copy.deepcopy(own)


def events(function: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Properties of a function's events of one type."""
    return [event["Properties"] for event in function.get("Events", {}).values() if event["Type"] == kind]


def variables(function: dict[str, Any]) -> dict[str, Any]:
    """Environment of a function."""
    found: dict[str, Any] = function["Environment"]["Variables"]
    return found


def target(value: Any) -> str:
    """Logical id that a `Ref`, `Fn::GetAtt` or `Fn::Sub` of one attribute points at; "" for anything else."""
    match value:
        case {"Ref": name} | {"Fn::GetAtt": [name, *_]}:
            return str(name)
        case {"Fn::Sub": str(text)} if text.startswith("${"):
            return text[2:].split("}")[0].split(".")[0]
        case _:
            return ""


def walk(value: Any) -> Iterator[Any]:
    """Every value in a tree, keys of maps included."""
    yield value
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)


def evaluate(template: Template, value: Any, parameters: dict[str, str]) -> Any:
    """Work out conditions and parameters as CloudFormation would; parts that are NoValue come out as None."""

    def inner(part: Any) -> Any:
        return evaluate(template, part, parameters)

    match value:
        case {"Ref": "AWS::NoValue"}:
            return None
        case {"Ref": name} if name in template["Parameters"]:
            return parameters.get(name, str(template["Parameters"][name].get("Default")))
        case {"Fn::If": [name, yes, no]}:
            return inner(yes if inner(template["Conditions"][name]) else no)
        case {"Fn::Equals": [left, right]}:
            return str(inner(left)) == str(inner(right))
        case {"Fn::Not": [part]}:
            return not inner(part)
        case {"Fn::And": parts}:
            return all(inner(part) for part in parts)
        case {"Fn::Join": [between, parts]}:
            # A list that is a parameter is one text, with commas.
            return str(between).join(inner(parts).split(","))
        case {"Condition": str(name)} if name in template["Conditions"]:
            return inner(template["Conditions"][name])
        case dict():
            return {key: inner(part) for key, part in value.items()}
        case list():
            return [inner(part) for part in value]
        case _:
            return value
