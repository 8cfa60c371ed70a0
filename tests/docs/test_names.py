"""What has a name that people type stands in the pages: parameters, variables, alarms, commands, events."""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import re
import shlex
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from sift import metrics
from sift_client.cli import make_parser
from tests.docs.pages import ROOT, blocks, names, pages, read, rows, section
from tests.template.document import functions, load, resources, variables
from tests.unit.client.fake_api import KEY, FakeApi

README, OPERATIONS = read("README.md"), read("docs/operations.md")


FOLDERS = {path.name for path in (ROOT / "functions").iterdir()}


def parameter_table(text: str) -> dict[str, str]:
    """Name to default of a table of parameters."""
    return {names(row[0])[0]: row[1].replace("\\*", "*") for row in rows(text)}


def parameters() -> dict[str, str]:
    return {name: str(found.get("Default", "")) or "empty" for name, found in load()["Parameters"].items()}


@pytest.mark.parametrize(
    "text", [section(README, "Deploy"), section(OPERATIONS, "Parameters")], ids=["README", "operations"]
)
def test_every_parameter_is_listed_with_its_default(text: str) -> None:
    assert parameter_table(text) == parameters()


def test_another_default_is_noticed() -> None:
    text = section(README, "Deploy").replace("| `JobsTotal` | 8 |", "| `JobsTotal` | 9 |")
    assert parameter_table(text) != parameters()


def test_every_variable_of_every_function_is_listed() -> None:
    documented: dict[str, set[str]] = {}
    for row in rows(section(OPERATIONS, "Environment")):
        for name in names(row[0]):
            documented[name] = FOLDERS if row[1] == "all" else set(row[1].split(", "))
    given: dict[str, set[str]] = {}
    for function in functions(load()).values():
        for name in variables(function):
            given.setdefault(name, set()).add(Path(function["CodeUri"]).name)
    assert documented == given


def test_every_variable_that_the_client_reads_is_listed() -> None:
    source = "".join(path.read_text() for path in (ROOT / "client" / "sift_client").glob("*.py"))
    assert set(re.findall(r"\bSIFT_[A-Z]+\b", source)) <= set(names(section(OPERATIONS, "Environment")))


def test_every_alarm_is_explained() -> None:
    listed = {names(row[0])[0] for row in rows(section(OPERATIONS, "Alarms"))}
    assert listed == set(resources(load(), "AWS::CloudWatch::Alarm"))


def make_commands(text: str) -> set[str]:
    """Targets of make that a page tells people to use."""
    typed = "\n".join([*names(text), *(block.text for block in blocks(text))])
    return set(re.findall(r"^make ([a-z][a-z0-9-]*)", typed, re.M))


def test_every_make_command_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", read("Makefile"), re.M))
    used = make_commands(README) | make_commands(OPERATIONS)
    assert {"run", "test"} <= used <= targets
    assert "nonsense" in make_commands("`make nonsense`") - targets


def test_the_first_block_is_how_to_run_and_test_it() -> None:
    assert make_commands(f"```\n{blocks(README)[0].text}```\n") == {"run", "test"}
    run = next(line for line in read("Makefile").splitlines() if "$(URLS)" in line)
    assert 'make run URLS="' in blocks(README)[0].text
    assert "sift demo" in run


def sift_commands(text: str) -> list[list[str]]:
    """The arguments of every `sift` command in the blocks of a page."""
    lines = [line for block in blocks(text) for line in block.text.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if re.match(r"(\.venv/bin/)?sift ", line)]


COMMANDS = sift_commands(README) + sift_commands(OPERATIONS)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_every_sift_command_is_understood(arguments: list[str]) -> None:
    assert callable(make_parser().parse_args(arguments).run)


def test_a_wrong_sift_command_is_noticed() -> None:
    (wrong,) = sift_commands("```\n.venv/bin/sift run https://example.com/ --colour  # never\n```\n")
    with pytest.raises(SystemExit):
        make_parser().parse_args(wrong)


def test_the_commands_of_the_client_are_shown() -> None:
    assert {arguments[0] for arguments in COMMANDS} >= {"run", "submit", "status", "wait", "results", "cancel", "local"}


def test_every_option_of_the_local_stack_is_listed() -> None:
    local = section(OPERATIONS, "The local stack")
    listed = {name.split()[0] for row in rows(local) for name in names(row[0])}
    subparsers: Any = make_parser()._subparsers
    parser = subparsers._group_actions[0].choices["local"]
    options = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
    assert listed == options - {"--help"}


def test_the_python_of_the_readme_runs(api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (example,) = [block.text for block in blocks(README) if block.language == "python"]
    monkeypatch.setenv("SIFT_URL", api.url)
    monkeypatch.setenv("SIFT_KEY", KEY)
    api.on_look = lambda: api.finish(0, "# Example")
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == "0 done # Example\n"


def test_every_event_file_is_listed_and_no_other() -> None:
    listed = {names(row[0])[0] for row in rows(read("events/README.md"))}
    assert listed == {path.name for path in (ROOT / "events").glob("*.json")}


def test_every_folder_that_the_readme_lists_exists() -> None:
    layout = next(block.text for block in blocks(section(README, "What is where")))
    listed = [line.split("  ")[0].split(", ")[0] for line in layout.splitlines()]
    assert len(listed) > 5
    for name in listed:
        assert (ROOT / name).exists(), name


def test_every_module_of_the_layer_is_on_the_map() -> None:
    layout = next(block.text for block in blocks(section(read("ARCHITECTURE.md"), "Modules")))
    package = ROOT / "layers" / "sift" / "sift"
    own = {path.name for path in package.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    files = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    listed = {path.stem for part in ("services", "api") for path in (package / part).glob("*.py")} - {"__init__"}
    words = set(re.findall(r"[\w.]+", layout))
    assert own | files | listed <= words


def test_every_name_of_the_code_is_there() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in pages())
    found = set(re.findall(r"`(sift(?:\.\w+){2,})`", texts))
    assert len(found) > 5
    for name in found:
        pkgutil.resolve_name(name)  # raises when nothing is called so


def test_every_log_line_of_the_table_is_logged() -> None:
    source = os.linesep.join(
        _logged(path) for path in [*(ROOT / "layers").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    )
    for row in rows(section(OPERATIONS, "Lines")):
        for part in (part.strip() for name in names(row[0]) for part in name.split("...")):
            assert part in source, part


def test_every_line_that_is_logged_is_in_the_table() -> None:
    listed = [name.split("...") for row in rows(section(OPERATIONS, "Lines")) for name in names(row[0])]
    sources = [*(ROOT / "layers").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    texts = {text for path in sources for text in _logged(path).split(os.linesep) if text}
    known = {text for text in texts for parts in listed if all(part.strip() in text for part in parts)}
    assert texts - known == set()


def _logged(path: Path) -> str:
    """All texts given to a logger in a file, one a line."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    texts = [
        argument.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in {"info", "warning", "error", "exception"}
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return os.linesep.join(texts)


def test_every_metric_is_explained_and_on_the_dashboard() -> None:
    table = {names(row[0])[n]: row for row in rows(section(OPERATIONS, "Metrics")) for n in range(len(names(row[0])))}
    assert set(table) == {metric.name for metric in metrics.ALL}
    for metric in metrics.ALL:
        assert table[metric.name][1] == metric.unit.lower()
        assert names(table[metric.name][2]) == ([metric.label] if metric.label else [])
    (dashboard,) = resources(load(), "AWS::CloudWatch::Dashboard").values()
    text = dashboard["Properties"]["DashboardBody"]["Fn::Sub"][0]
    assert {metric.name for metric in metrics.ALL if metric.name not in text} == set()
    assert json.loads(text)["widgets"]


_SEARCH = re.compile(r'SEARCH\(\'\{"\$\{Space\}",([a-z,]+)\} MetricName=([A-Za-z]+)\', \'Sum\', 300\)')


def searched(text: str) -> dict[str, list[str]]:
    """Metric to dimensions of every search on a dashboard. A namespace with `/` or `-` has to stand in quotes."""
    widgets = json.loads(text)["widgets"]
    lines = [line for widget in widgets for line in widget["properties"]["metrics"]]
    found = {}
    for expression in (entry["expression"] for entry in map(itemgetter(0), lines) if isinstance(entry, dict)):
        match = _SEARCH.fullmatch(expression)
        assert match, expression
        found[match[2]] = match[1].split(",")
    return found


def test_the_searches_of_the_dashboard_find_their_metrics() -> None:
    (dashboard,) = resources(load(), "AWS::CloudWatch::Dashboard").values()
    text = dashboard["Properties"]["DashboardBody"]["Fn::Sub"][0]
    split = {metric.name: sorted(["service", metric.label]) for metric in metrics.ALL if metric.label}
    assert {name: sorted(dimensions) for name, dimensions in searched(text).items()} == split
    with pytest.raises(AssertionError):
        searched(text.replace('\\"${Space}\\"', "${Space}"))


def test_every_alarm_on_a_metric_of_sift_names_one() -> None:
    split = {metric.name: metric.label for metric in metrics.ALL}
    for name, alarm in resources(load(), "AWS::CloudWatch::Alarm").items():
        found = alarm["Properties"]
        if found["Namespace"] == {"Fn::Sub": "sift/${AWS::StackName}"}:
            dimensions = {one["Name"]: one["Value"] for one in found["Dimensions"]}
            assert dimensions.pop("service") == "sift", name
            assert list(dimensions) == [split[found["MetricName"]]], name


def test_the_readme_counts_what_costs_while_nothing_happens() -> None:
    numbers = {13: "thirteen", 14: "fourteen", 15: "fifteen", 17: "seventeen", 18: "eighteen", 19: "nineteen"}
    numbers |= {
        20: "twenty",
        22: "twenty-two",
        23: "twenty-three",
        24: "twenty-four",
        25: "twenty-five",
        26: "twenty-six",
        27: "twenty-seven",
        28: "twenty-eight",
    }
    alarms = resources(load(), "AWS::CloudWatch::Alarm").values()
    always = [alarm for alarm in alarms if "Condition" not in alarm]
    text = f"the {numbers[len(always)]} alarms ({numbers[len(alarms)]} with a gateway), one dashboard"
    assert text in section(README, "What it costs")
