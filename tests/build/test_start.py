"""Each built function starts in Lambda's emulator, from its artifact and layers alone, and answers its event."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.build.account import EVENTS, Account, open_account
from tests.build.built import HOST_ARCHITECTURE, Build
from tests.build.emulator import PYTHON, find_emulator, started
from tests.template.document import functions

pytestmark = pytest.mark.needs_sam


@pytest.fixture(scope="module")
def emulator() -> Path:
    found = find_emulator()
    if found is None or not PYTHON.exists():
        pytest.skip("the emulator and awslambdaric are not installed; make build-test installs them")
    return found


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with open_account() as made:
        yield made


def _is_right(function: str, answer: Any) -> bool:
    match function:
        case "ApiFunction":
            return answer["statusCode"] == 404 and json.loads(answer["body"])["code"] == "not_found"
        case "AssembleFunction" | "FetchFunction" | "InferenceFunction" | "NotifyFunction":
            return answer == {"batchItemFailures": []}  # of a job that is not there: done with
        case "ScheduleFunction":
            return answer["job_id"].startswith("job_")
        case "FetchNowFunction":
            body = answer["body"]
            text = base64.b64decode(body).decode() if answer["isBase64Encoded"] else body
            return answer["statusCode"] == 200 and "It is long." in json.loads(text)["content"]
        case _:
            return answer["resent"] == 0


@pytest.mark.parametrize("function", sorted(EVENTS))
def test_it_starts_and_answers(
    function: str, account: Account, emulator: Path, build: Callable[[str], Build], tmp_path: Path
) -> None:
    made = build(HOST_ARCHITECTURE)
    spec = functions(made.template)[function]
    output = tmp_path / "output"
    with started(made.roots(spec), spec["Handler"], account.environment(function), emulator, output) as running:
        answers = [running.invoke(account.event(function)).value for _ in range(2)]
    assert all(_is_right(function, answer) for answer in answers), (answers, output.read_text(errors="replace"))


def test_every_function_has_its_event(build: Callable[[str], Build]) -> None:
    assert set(functions(build(HOST_ARCHITECTURE).template)) == set(EVENTS)


def test_layers_bring_compiled_bytecode_that_names_no_place_of_the_build(build: Callable[[str], Build]) -> None:
    folder = build(HOST_ARCHITECTURE).folder
    for layer in ("RuntimeLayer", "ContentLayer", "SiftLayer"):
        root = folder / layer / "python"
        sources = [path for path in root.rglob("*.py") if path.stat().st_size]
        compiled = [path for path in sources if (path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc").exists()]
        assert len(compiled) >= 0.99 * len(sources), f"{layer}: {len(compiled)} of {len(sources)}"
        for path in root.rglob("*.pyc"):
            data = path.read_bytes()
            # PEP 552: unchecked, so that no time stamp is in it and no source is read for it.
            assert int.from_bytes(data[4:8], "little") == 0b01, path
            assert str(folder).encode() not in data, path
