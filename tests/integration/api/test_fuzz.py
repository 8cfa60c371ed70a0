"""Whatever is sent, the API function answers; what it refuses is a problem with a code of the documents, and leaves
nothing behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sift.api import cursors
from tests.docs.pages import names, read, rows, section
from tests.integration.api.stage import Reply, Stage, make_event

URL = "https://example.com/"
#: Code to statuses, of requests.
CODES = {
    names(cells[0])[0]: {int(status) for status in re.findall(r"\d{3}", cells[1])}
    for cells in rows(section(read("docs/api.md"), "Errors of a request"))
}
fuzz: Callable[[Any], Any] = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.large_base_example],
)

characters = st.characters(exclude_categories=["Cs"])  # API Gateway hands on UTF-8
words = st.text(characters, max_size=60) | st.text(st.characters(max_codepoint=255), max_size=60)
long_words = words | st.builds(lambda word, times: word * times, words, st.integers(100, 2_000))
numbers = st.integers(-(2**70), 2**70).map(str) | st.floats().map(str)
any_text = st.text(st.characters(), max_size=30)  # in JSON a caller may escape half a surrogate pair
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def job_id(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job of a caller that may have any number of others."""
    monkeypatch.setenv("JOBS_TOTAL", "10000")
    stage.key = stage.new_key(limits={"jobs_per_caller": 1000, "retained_jobs": 100_000})
    made = stage.submit(URL)
    stage.work()
    return made


def judge(stage: Stage, method: str, path: str, body: Any = None, **more: Any) -> Reply:
    """Send it; hold the answer to what every answer has to be."""
    query, headers = more.get("query", {}), {"content-type": "application/json", **more.get("headers", {})}
    if more.get("key", True):
        headers["authorization"] = f"Bearer {stage.key}"
    event = make_event(method, path, body, headers, {}, more.get("in_base64", False))
    if query:
        event |= {"queryStringParameters": query, "rawQueryString": urlencode(query, errors="replace")}
    before = stage.stored()
    reply = stage.send(event)
    assert reply.status < 500, reply.raw
    if reply.status >= 400:
        assert reply.status in CODES[reply.code]
        assert stage.stored() == before
    for name, value in reply.headers.items():
        assert re.fullmatch(r"[!-~]+", name)
        assert re.fullmatch(r"[ -~]*", value)
    return reply


@pytest.mark.parametrize("name", ["authorization", "x-api-key"])
def test_credentials(stage: Stage, name: str) -> None:
    key_id = stage.key.rpartition("_")[0]
    near = st.sampled_from(
        ["Bearer ", "bearer", "Basic ", f"Bearer {key_id}_", f"{key_id}_", f"{stage.key} ", "sift__"]
    )

    @fuzz
    @given(long_words, near | st.just(""), st.sampled_from(["GET", "POST"]))
    @example("\x00", f"Bearer {stage.key}", "GET")
    @example("a.b.c", "Bearer ", "POST")
    @example("eyJhbGciOiJub25lIn0.e30.", "Bearer ", "GET")
    def check(word: str, start: str, method: str) -> None:
        body = {"targets": [{"url": URL}]} if method == "POST" else None
        sent = f"{start}{word}"
        reply = judge(stage, method, "/v1/jobs", body, headers={name: sent}, key=False)
        right = {f"Bearer {stage.key}", stage.key}
        assert reply.status == 401 or " ".join(sent.split()) in right

    check()


def test_idempotency_keys(stage: Stage, job_id: str) -> None:
    @fuzz
    @given(long_words, st.sampled_from(["idempotency-key", "x-idempotency-key"]))
    def check(word: str, name: str) -> None:
        reply = judge(stage, "POST", "/v1/jobs", {"targets": [{"url": URL}]}, headers={name: word})
        assert reply.status in {200, 202, 422}
        again = judge(stage, "POST", "/v1/jobs", {"targets": [{"url": URL}]}, headers={name: word})
        assert again.status == (200 if reply.status == 202 else reply.status)

    check()


def test_other_headers(stage: Stage, job_id: str) -> None:
    @fuzz
    @given(st.dictionaries(words.map(str.lower), long_words, max_size=5))
    def check(headers: dict[str, str]) -> None:
        headers = {name: value for name, value in headers.items() if name not in {"authorization", "x-api-key"}}
        assert judge(stage, "GET", f"/v1/jobs/{job_id}", headers=headers).status == 200

    check()


def test_paths(stage: Stage, job_id: str) -> None:
    ids = words | st.just(job_id) | st.builds(lambda word: job_id + word, words) | st.just(job_id.lower())
    ends = [
        "",
        "/targets",
        "/targets/{}",
        "/targets/{}/content",
        "/cancel",
        "/pause",
        "/resume",
        "/retry",
        "/{}",
        "/{}/{}",
    ]

    @fuzz
    @given(st.sampled_from(["GET", "POST", "DELETE", "PUT", "PATCH"]), ids, st.sampled_from(ends), words | numbers)
    @example("GET", job_id, "/targets/{}", "0\n")
    @example("GET", job_id, "/targets/{}", "٣")
    @example("GET", job_id, "/targets/{}", "9" * 5_000)
    @example("GET", job_id, "/targets/{}/content", "-0")
    @example("GET", job_id + "\n", "", "")
    @example("GET", "../healthz", "", "")
    def check(method: str, found: str, end: str, index: str) -> None:
        reply = judge(stage, method, f"/v1/jobs/{found}{end.replace('{}', index)}")
        if found != job_id:
            assert reply.status in {404, 422}

    check()


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/{}", "/v1/jobs/{}/targets", "/v1/jobs/{}/targets/0/content"])
def test_queries(stage: Stage, job_id: str, path: str) -> None:
    known = st.sampled_from(
        ["cursor", "limit", "status", "kind", "tenant", "actor", "all", "content", "offset", "max_chars"]
    )

    sent = long_words | numbers | st.sampled_from(["true", "false", "done", "fetch", "1"])

    @fuzz
    @given(st.dictionaries(known, sent, max_size=2) | st.dictionaries(known | words, sent, max_size=3))
    def check(query: dict[str, str]) -> None:
        query.pop("wait", None)  # it would
        judge(stage, "GET", path.format(job_id), query=query)

    check()


def test_cursors(stage: Stage, job_id: str) -> None:
    for _ in range(3):
        stage.submit(URL, fresh=True)
    good = stage.get("/v1/jobs", limit=1).json["next"]
    other = cursors.encode("somebody/else", job_id)
    changed = st.builds(
        lambda place, char: good[:place] + char + good[place + 1 :], st.integers(0, len(good) - 1), characters
    )

    @fuzz
    @given(words | changed | st.sampled_from([other, good + "=", good + "\n", good[:-1], good * 50]))
    def check(cursor: str) -> None:
        for path in ("/v1/jobs", f"/v1/jobs/{job_id}/targets"):
            reply = judge(stage, "GET", path, query={"cursor": cursor})
            if cursor != good:
                assert (reply.status, reply.code) == (400, "bad_cursor")

    check()


options = st.dictionaries(
    st.sampled_from(["mode", "pages", "grep", "jq", "question", "context", "headers", "recover"]) | any_text,
    values | st.sampled_from(["auto", "1-3", ".a", "(", "x" * 5_000]) | st.dictionaries(any_text, any_text, max_size=3),
    max_size=3,
)
targets = st.fixed_dictionaries(
    {"url": st.just(URL) | any_text.map(lambda word: URL + word) | values},
    optional={"options": options | values, "id": any_text | values},
)
bodies = st.fixed_dictionaries(
    {"targets": st.lists(targets | values, max_size=3) | values},
    optional={
        "options": options | values, "window": values, "fresh": values, "webhook": values, "requests": values,
        "metadata": st.dictionaries(any_text, any_text, max_size=3) | values,
    },
)  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/{}/retry", "/v1/jobs/{}/cancel"])
def test_bodies(stage: Stage, job_id: str, path: str) -> None:
    @fuzz
    @given(st.one_of(bodies, bodies, bodies, values), st.booleans())
    @example({"targets": [{"url": f"{URL}\ud800"}]}, True)
    @example({"targets": [{"url": URL, "id": "\udfff"}]}, True)
    @example({"targets": [{"url": URL, "options": {"grep": "\ud800"}}]}, True)
    @example({"targets": [{"url": URL, "options": {"question": "why \ud800"}}]}, True)
    @example({"targets": [{"url": URL}], "metadata": {"\ud800": "\udfff"}}, True)
    @example({"targets": [{"url": URL}], "metadata": {"a": "\x00"}}, True)
    @example({"targets": [{"url": URL}], "window": 10**400}, True)
    @example({"\ud800": 1}, True)
    def check(body: Any, escaped: bool) -> None:
        text = json.dumps(body, ensure_ascii=escaped)
        judge(stage, "POST", path.format(job_id), text.encode("utf-8", "replace").decode())

    check()


def test_bytes(stage: Stage, job_id: str) -> None:
    @fuzz
    @given(st.binary(max_size=300), st.booleans())
    def check(data: bytes, in_base64: bool) -> None:
        body = data if in_base64 else data.decode("utf-8", "replace")
        assert judge(stage, "POST", "/v1/jobs", body, in_base64=in_base64).status in {400, 422}

    check()
