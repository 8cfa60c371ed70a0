"""What `sam local` needs: a stack at an address of its own, a template with the services' address, and values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sift_client.client import Sift
from sift_client.local import LocalStack, TemplateError
from sift_client.local.document import read_document
from sift_client.local.sam_files import TEMPLATE_FILE, VARIABLES_FILE, built_template, write_sam_files

TEMPLATE = Path(__file__).parents[3] / "template.yaml"
HOST = "127.0.0.2"


def test_a_stack_at_another_address_does_its_work_there(tmp_path: Path) -> None:
    with LocalStack(TEMPLATE, site=True, log_dir=tmp_path, host=HOST) as stack:
        given = stack.variables()
        addresses = [stack.url, stack.site.url, *(values["AWS_ENDPOINT_URL"] for values in given.values())]
        assert all(address.startswith(f"http://{HOST}:") for address in addresses)
        assert given["ApiFunction"]["FETCH_QUEUE_URL"].startswith(f"http://{HOST}:")
        assert given["FetchFunction"]["GUARD_ALLOW"] == stack.site.url.removeprefix("http://")
        with Sift(stack.url, stack.key) as client:
            job = client.submit([f"{stack.site.url}/articles/tide-tables.html"])
            while client.get(job["id"], wait=10)["status"] in {"queued", "running"}:
                pass
            (slot,) = client.targets(job["id"], content=True)
    assert "Thirty-seven wheels" in slot["content"]


def test_the_built_template_gets_the_one_variable_that_it_lacks(tmp_path: Path) -> None:
    built = built_template(tmp_path / "template.yaml")
    built.parent.mkdir(parents=True)
    # `sam build` changes no more than the folders, which it names beside its own template.
    built.write_text(TEMPLATE.read_text("utf-8").replace("CodeUri: functions/api/", "CodeUri: ApiFunction"), "utf-8")
    folder = tmp_path / "local"
    values = {"ApiFunction": {"TABLE_NAME": "jobs"}}
    write_sam_files(folder, built, values)
    assert json.loads((folder / VARIABLES_FILE).read_text("utf-8")) == values
    before, after = read_document(built).body, read_document(folder / TEMPLATE_FILE).body
    api = after["Resources"]["ApiFunction"]["Properties"]
    assert api["CodeUri"] == str(built.parent / "ApiFunction")
    variables = after["Globals"]["Function"]["Environment"]["Variables"]
    assert variables.pop("AWS_ENDPOINT_URL") == ""
    assert after["Globals"] == before["Globals"]
    assert set(after["Resources"]) == set(before["Resources"])


def test_without_a_build_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="run `sam build` first"):
        write_sam_files(tmp_path, built_template(tmp_path / "template.yaml"), {})
