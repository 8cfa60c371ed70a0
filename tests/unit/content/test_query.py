"""jq: one output a line, programs that do not compile or fail, and what a program cannot see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sift.content import query as module
from sift.content.query import run_program
from sift.errors import TargetFailed

DOCUMENT = (
    '{"name": "Brume", "tides": [{"at": "04:10", "m": 1.10}, {"at": "10:25", "m": 4.2}], "id": 100000000000000000001}'
)


def outputs(program: str, text: str = DOCUMENT) -> list[str]:
    content, count = run_program(program, text)
    assert content.endswith("\n")
    lines = content.removesuffix("\n").split("\n")
    assert len(lines) == count
    return lines


def failure(program: str, text: str = DOCUMENT, *, damaged: bool = True) -> TargetFailed:
    with pytest.raises(TargetFailed) as caught:
        run_program(program, text, damaged=damaged)
    assert caught.value.hint
    assert "\n" not in caught.value.detail
    return caught.value


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (".name", ['"Brume"']),
        (".tides[].at", ['"04:10"', '"10:25"']),
        (".tides[0]", ['{"at":"04:10","m":1.10}']),
        (".id", ["100000000000000000001"]),
        (".missing", ["null"]),
        ('"a\\nb", "ü", [], {}', ['"a\\nb"', '"ü"', "[]", "{}"]),
        (".tides | map(.m) | max # the highest", ["4.2"]),
        ("def high: select(.m > 2); .tides[] | high | .at", ['"10:25"']),
        ("[limit(3; repeat(1))]", ["[1,1,1]"]),
        ("nan, infinite | . == .", ["false", "true"]),
    ],
)
def test_one_output_a_line(program: str, lines: list[str]) -> None:
    assert outputs(program) == lines
    for line in lines:
        json.loads(line)


def test_each_document_of_json_lines_in_turn() -> None:
    assert outputs(".n", '{"n": 1}\n{"n": 2}\n\n{"n": [3]}') == ["1", "2", "[3]"]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("foo", "foo/0 is not defined (line 1, column 1)"),
        (".a |\n  bar(1)", "bar/1 is not defined (line 2, column 3)"),
        ("{", "syntax error"),
        ("$x", "$x is not defined"),
        ("# nothing", "Top-level program not given"),
        ("def f: 1;", "Top-level program not given"),
        ("1) | (2", "syntax error"),
        (".\x00.", "zero byte"),
        ("module {}; .", "Modules cannot be used"),
    ],
)
def test_a_program_that_does_not_compile(program: str, words: str) -> None:
    error = failure(program)
    assert error.code == "bad_jq"
    assert words in error.detail
    assert "tojson" not in error.detail
    assert "jq: " not in error.detail


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (".name.first", "Cannot index string"),
        (".tides[] | .at + 1", "cannot be added"),
        ('error("my own\\nwords")', "my own words"),
        ("error(null)", "null"),
        ("input", "no further input"),
        ("1, error", "The program fails"),
        ('"my last words" | halt_error', "halted: my last words"),
        ("1, ({code: 7} | halt_error(7))", 'halted: {"code":7}'),
        ("null | halt_error", "halted: null"),
        ('"a" * 3 | test("(")', "fails"),
        ('("a" * 30 + "b") | test("(a+)+$")', "fails"),
    ],
)
def test_a_program_that_fails(program: str, words: str) -> None:
    error = failure(program)
    assert (error.code, words in error.detail) == ("bad_jq", True), error.detail


@pytest.mark.parametrize("program", ["empty", "select(false)", "halt", ".tides[] | select(.m > 9)"])
def test_no_output(program: str) -> None:
    assert failure(program).code == "no_match"


def test_what_speaks_of_the_process_is_harmless() -> None:
    program = "input_filename, [inputs], (try input_line_number catch 0), get_search_list"
    assert outputs(program) == ["null", "[]", "0", "[]"]
    assert outputs('"spoken" | debug, stderr') == ['"spoken"', '"spoken"']


@pytest.mark.parametrize(
    "program",
    [
        'import "found" as $x {{search: "{folder}"}}; $x',
        'import "found" as x {{search: "{folder}"}}; x::a',
        'include "found" {{search: "{folder}"}}; a',
        'import "{folder}/found" as $x; $x',
        '"{folder}/found" | modulemeta',
        '1) | tojson; import "found" as $x {{search: "{folder}"}}; ($x',
    ],
)
def test_no_file_is_read(tmp_path: Path, program: str) -> None:
    (tmp_path / "found.json").write_text('"secret"')
    (tmp_path / "found.jq").write_text('module {"secret": 1}; def a: "secret";')
    own = program.format(folder=tmp_path)
    with pytest.raises(TargetFailed) as caught:
        run_program(own, DOCUMENT)
    assert caught.value.code == "bad_jq"
    assert "secret" not in caught.value.detail


@pytest.mark.parametrize("text", ['{"a": ', "{'a': 1}", '{"a": 1} trailing', "<html>", '"open'])
def test_what_is_no_json(text: str) -> None:
    assert failure(".", text).code == "damaged"
    assert failure(".", text, damaged=False).code == "bad_jq"


def test_output_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure('repeat("x" * 1000)').code == "filter_limit"
    monkeypatch.setattr(module, "MAX_OUTPUT_CHARS", 10)
    assert outputs('"1234567"') == ['"1234567"']
    assert failure('"12345678"').code == "filter_limit"


def test_deep_values_stay_json() -> None:
    (line,) = outputs("reduce range(200) as $i (1; [.])")
    assert line == "[" * 200 + "1" + "]" * 200
    assert failure("reduce range(20000) as $i (1; [.])").code == "filter_limit"
    assert outputs('"[<skipped: too deep>]"') == ['"[<skipped: too deep>]"']


def test_a_program_may_have_a_halt_error_of_its_own() -> None:
    assert outputs('def halt_error: "mine"; halt_error') == ['"mine"']
