"""docs/api.md has the routes, fields, options and numbers of the code."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest

from sift import excerpts, model_requests
from sift.api import answers, application, immediate, models, problems, routes, submissions, views
from sift.content import delimited, extraction, feeds, filters, grep, links, passages, pdf, query
from sift.content.addresses import DEFAULT_PORTS
from sift.content.client import FetchLimits
from sift.content.pipeline import PipelineSettings
from sift.content.responses import _BUSY
from sift.jobs import MAX_WINDOW
from sift.patterns import MAX_PATTERN_BYTES
from sift.services import fetching, pace, slots, work
from sift.services import read as reading
from sift.targets import MAX_CONTEXT, MAX_PROGRAM_CHARS, MAX_QUESTION_CHARS, FetchOptions, Mode
from tests.docs.pages import names, read, rows, section
from tests.template.document import events, functions, load

PAGE = read("docs/api.md")
OPENAPI = json.loads(read("docs/openapi.json"))
#: Served, and not part of the document that describes the service.
NOT_DESCRIBED = {"GET /openapi.json", "GET /docs"}
_ROUTE = re.compile(r"^### `([A-Z]+ /[^`]*)`$", re.M)


def documented(page: str = PAGE) -> set[str]:
    return set(_ROUTE.findall(page))


def without_names(found: set[str]) -> set[str]:
    """Routes with their parameters unnamed: the template and the code call them differently."""
    return {re.sub(r"\{\w+\}", "{}", route) for route in found}


def described() -> dict[str, Any]:
    """Operations of the OpenAPI document by route."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in OPENAPI["paths"].items()
        for method, operation in methods.items()
    }


def of_template() -> set[str]:
    return {
        f"{e['Method']} {e['Path']}" for function in functions(load()).values() for e in events(function, "HttpApi")
    }


def test_every_route_of_the_template_has_its_section() -> None:
    assert documented() == of_template()


def test_every_route_of_the_template_is_described_and_no_other() -> None:
    assert without_names(set(described())) == without_names(of_template() - NOT_DESCRIBED)


def test_a_route_without_a_section_is_noticed() -> None:
    assert documented(PAGE.replace("### `POST /v1/jobs`", "### Submit")) != of_template()


@pytest.mark.parametrize("route", sorted(described()))
def test_query_parameters_are_in_the_section_of_their_route(route: str) -> None:
    heading = next(f"`{found}`" for found in documented() if without_names({found}) == without_names({route}))
    text = section(PAGE, heading)
    for parameter in described()[route].get("parameters", []):
        if parameter["in"] == "query":
            assert re.search(rf"`{parameter['name']}[`=]", text), parameter["name"]


BODIES = (
    models.JobRequest, models.TargetRequest, answers.Job, answers.JobCounts, answers.JobError, answers.JobPage,
    answers.Target, answers.TargetError, answers.TargetPage, answers.Problem, answers.Health, models.FetchRequest,
    answers.Fetched, models.ModelRequest, models.WebhookRequest, answers.Webhook, FetchOptions,
)  # fmt: skip


@pytest.mark.parametrize("model", BODIES)
def test_every_field_is_named(model: Any) -> None:
    written = set(names(PAGE)) | set(re.findall(r'"(\w+)":', PAGE))
    assert set(model.model_fields) <= written


def test_every_model_of_the_api_is_among_them() -> None:
    own = {
        value for module in (models, answers) for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    }  # fmt: skip
    assert {model for model in own if not model.__name__.startswith("_")} == set(BODIES) - {FetchOptions}


def test_every_mode_and_status_is_explained() -> None:
    modes = {names(cell)[0] for row in rows(section(PAGE, "Options")) for cell in row[:2] if names(cell)}
    assert set(get_args(Mode)) <= modes
    explained = {name for row in rows(section(PAGE, "A job")) for name in names(row[0])}
    assert explained == set(get_args(answers.Job.model_fields["status"].annotation))


LIMITS = FetchLimits()
SETTINGS = PipelineSettings()
SIZES = {
    "request body": [f"{application.BODY_BYTES:,}"],
    "URL": [f"{models.URL_CHARS:,}"],
    "body of a request to the gateway": [
        f"{model_requests.MAX_BODY_BYTES:,}", f"{model_requests.MAX_PATH_CHARS} characters",
        f"model {model_requests.MAX_MODEL_CHARS}",
    ],
    "answer of the gateway": ["64 MiB"],
    "answer with slots": [f"{views.PAGE_BYTES:,}", f"{slots.INLINE_BYTES:,}"],
    "document": [
        f"{LIMITS.wire_bytes >> 20} MiB", f"{LIMITS.decoded_bytes >> 20} MiB", f"{LIMITS.header_bytes >> 10} KiB",
    ],
    "redirects": [f"{LIMITS.redirects}"],
    "ports": [str(port) for port in sorted(DEFAULT_PORTS)],
    "one fetch": [
        f"{fetching.TARGET_SECONDS:.0f} s", f"{immediate.TARGET_SECONDS:.0f} s",
        f"{SETTINGS.timeouts.connect:.0f} s", f"{SETTINGS.timeouts.read:.0f} s",
    ],
    "reading a document": [
        f"{SETTINGS.extract_s:.0f} s", f"{SETTINGS.child.cpu_s} s", f"{SETTINGS.child.memory_bytes >> 20} MiB",
    ],
    "PDF": [f"{pdf.MAX_PAGES:,}"],
    "links of a document, addresses of a sitemap": [f"{links.MAX_LINKS:,}"],
    "feed": [f"{feeds.MAX_ENTRIES:,}", f"{feeds.MAX_FEED_TAGS:,}"],
    "CSV as a Markdown table": [f"{delimited.MAX_CELLS:,}"],
    "spreadsheet": ["250,000"],
    "gzip file": [f"{extraction.MAX_UNPACKED_BYTES >> 20} MiB"],
    "filters": [
        f"{filters.FILTER_CPU_S:.0f} s", f"{grep.MAX_OUTPUT_BYTES:,} bytes", f"{query.MAX_OUTPUT_CHARS:,} characters",
        f"reads {grep.MAX_INPUT_BYTES:,}", f"{grep.MAX_MATCHES:,} lines", f"{MAX_PATTERN_BYTES:,} bytes",
        f"{MAX_PROGRAM_CHARS:,} characters", f"question {MAX_QUESTION_CHARS:,}",
    ],
    "`question`": [
        f"{passages.MOST_PASSAGES} passages", f"{passages.MOST_CHARS:,} characters", f"{passages.MAX_INPUT_CHARS:,}",
    ],
    "one host": [f"{pace.SLOWED_MS // 60_000} minutes"],
    "a busy target": [f"{work.BUSY_FOR_SECONDS / 60:.0f} minutes"],
}  # fmt: skip


def test_sizes_and_times_are_those_of_the_code() -> None:
    written = {row[0]: row[1] for row in rows(section(PAGE, "Sizes and times"))}
    assert written.keys() == SIZES.keys()
    for what, numbers in SIZES.items():
        for number in numbers:
            assert number in written[what], what


def test_numbers_in_the_text_are_those_of_the_code() -> None:
    submit, jobs = section(PAGE, "`POST /v1/jobs`"), section(PAGE, "`GET /v1/jobs`")
    targets = section(PAGE, "`GET /v1/jobs/{id}/targets`")
    assert f"1 to {MAX_WINDOW} (default {MAX_WINDOW})" in submit
    assert f"up to {submissions.KEY_CHARS}" in submit
    assert f"1 to {routes.PAGE_JOBS}, default 20" in jobs
    assert f"{reading.LIST_LOOKS:,} jobs" in jobs
    assert f"1 to {routes.PAGE_SLOTS:,}, default 100" in targets
    assert f"seconds, 0 to {routes.WAIT_SECONDS}" in section(PAGE, "`GET /v1/jobs/{id}`")
    assert f"1 to {excerpts.MAX_CHARS:,}" in section(PAGE, "`GET /v1/jobs/{id}/targets/{index}/content`")
    assert f"0 to {MAX_CONTEXT}" in section(PAGE, "Options")
    assert views.LINK_SECONDS == 5 * 60
    assert "five minutes" in section(PAGE, "`GET /v1/jobs/{id}/targets/{index}/content`")


def test_the_status_of_each_code_of_a_target_is_in_the_table() -> None:
    written = {row[0]: set(names(row[1])) - {"Retry-After"} for row in rows(section(PAGE, "`POST /v1/fetch`"))}
    expected: dict[str, set[str]] = {"422": set()}  # whatever the others don't name
    for code, status in problems.TARGET_STATUS.items():
        expected.setdefault(str(status), set()).add(code)
    assert written == expected
    assert set(problems.TARGET_STATUS) <= {names(row[0])[0] for row in rows(section(PAGE, "Errors of a target"))}


def test_the_statuses_that_count_as_busy_are_listed() -> None:
    row = next(row for row in rows(section(PAGE, "Errors of a target")) if row[0] == "`busy`")
    listed = {int(number) for number in re.findall(r"\b\d{3}\b", row[1])}
    assert listed | set(range(520, 525)) == set(_BUSY)
    assert "520 to 524" in row[1]
