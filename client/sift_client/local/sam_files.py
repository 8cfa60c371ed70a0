"""What `sam local` needs to run a built function on a local stack: a template and the values of its variables.

`sam local` hands a container only those variables that its template declares, and sift's declares no address of the
AWS services: on AWS there is nothing to say. So the built template is written once more, with that one variable.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sift_client.local.document import read_document
from sift_client.local.errors import TemplateError

TEMPLATE_FILE = "template.json"
VARIABLES_FILE = "env.json"
ENDPOINT = "AWS_ENDPOINT_URL"
#: Properties that name a folder beside the built template.
FOLDERS = ("CodeUri", "ContentUri")


def built_template(template: Path) -> Path:
    """Where `sam build` leaves its work for a template."""
    return template.resolve().parent / ".aws-sam" / "build" / "template.yaml"


def write_sam_files(folder: Path, built: Path, variables: dict[str, dict[str, str]]) -> None:
    """Write template.json and env.json, for `sam local ... -t` and `--env-vars`; `variables` by function.

    Raises TemplateError where nothing has been built.
    """
    if not built.is_file():
        raise TemplateError(f"{built}: not there; run `sam build` first")
    body = read_document(built).body
    for resource in body["Resources"].values():
        properties = resource.get("Properties", {})
        for name in FOLDERS:
            if isinstance(properties.get(name), str):
                properties[name] = str(built.parent / properties[name])
    _function_globals(body)[ENDPOINT] = ""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TEMPLATE_FILE).write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    (folder / VARIABLES_FILE).write_text(json.dumps(variables, indent=2) + "\n", encoding="utf-8")


def _function_globals(body: dict[str, Any]) -> dict[str, Any]:
    """The variables that every function of the template has."""
    part = body
    for name in ("Globals", "Function", "Environment", "Variables"):
        part = part.setdefault(name, {})
    return part
