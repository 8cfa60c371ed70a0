"""POST /v1/fetch, called as Lambda calls its function: with a pipeline of the test's, and with the real one."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from sift import environment
from sift.api.immediate import RESERVE_SECONDS, TARGET_SECONDS
from sift.api.problems import TARGET_STATUS
from sift.errors import TARGET_CODES, TargetBusy, TargetFailed, Unavailable
from sift.targets import Content, FetchOptions
from tests.integration.api.stage import Reply, Stage, context, make_event, read_event
from tests.integration.content.loopback import Loopback, respond
from tests.integration.content.wayback import Wayback

URL = "https://example.com/page"
TEXT = "text/markdown; charset=utf-8"


class Answering:
    """In place of the pipeline: `answer` is what it gives or raises; `calls` are what it was asked."""

    def __init__(self) -> None:
        self.answer: Content | Exception = Content(b"# Title", TEXT, {"status": 200, "chars": 7})
        self.calls: list[tuple[str, FetchOptions, float]] = []
        self.settings: Any = None
        #: What is given or raised for a page that is given up; by default, why it is.
        self.copy: Content | Exception | None = None
        self.gone: list[tuple[TargetFailed, float]] = []


@pytest.fixture
def pipeline(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answering:
    answering = Answering()

    class Pipeline:
        def __init__(self, settings: Any, **_: Any) -> None:
            answering.settings = settings

        async def run(
            self, url: str, options: FetchOptions, deadline_s: float, *, gone: TargetFailed | None = None
        ) -> Content:
            answer = answering.answer
            if gone is None:
                answering.calls.append((url, options, deadline_s))
            else:
                answering.gone.append((gone, deadline_s))
                answer = answering.copy or gone
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr("sift.content.pipeline.Pipeline", Pipeline)
    return answering


def fetch(stage: Stage, url: str = URL, **options: Any) -> Reply:
    return stage.request("POST", "/v1/fetch", {"url": url, "options": options})


def test_a_page(stage: Stage, pipeline: Answering) -> None:
    reply = fetch(stage, mode="text", pages="1-2")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    meta = {"status": 200, "chars": 7, "attempts": 1, "content_type": TEXT}
    assert reply.json == {"content": "# Title", "meta": meta}
    assert pipeline.calls == [(URL, FetchOptions(mode="text", pages="1-2"), TARGET_SECONDS)]
    assert (pipeline.settings.archive_replay, pipeline.settings.user_agent) == (
        "https://web.archive.org/web",
        "sift/0.1",
    )


def test_without_options(stage: Stage, pipeline: Answering) -> None:
    assert stage.request("POST", "/v1/fetch", {"url": URL}).status == 200
    assert pipeline.calls[0][1] == FetchOptions()


def test_the_event_in_the_repository(stage: Stage, pipeline: Answering) -> None:
    event = read_event("fetch_now-page")
    event["headers"]["authorization"] = f"Bearer {stage.key}"
    assert stage.send(event).json["content"] == "# Title"
    assert pipeline.calls[0][:2] == ("https://example.com/", FetchOptions(mode="article"))


def test_nothing_is_kept(stage: Stage, pipeline: Answering) -> None:
    before = stage.stored()
    assert fetch(stage).status == 200
    assert stage.stored() == before
    assert stage.get("/v1/jobs").json["jobs"] == []


def test_the_deadline_leaves_time_to_answer(stage: Stage, pipeline: Answering) -> None:
    headers = {"authorization": f"Bearer {stage.key}"}
    event = make_event("POST", "/v1/fetch", {"url": URL}, headers, {}, in_base64=False)
    for seconds, deadline in ((29.0, TARGET_SECONDS), (10.0, 10.0 - RESERVE_SECONDS), (1.0, 0.0)):
        stage.deployment.functions["fetch_now"].lambda_handler(event, context(seconds))
        assert pipeline.calls[-1][2] == deadline


# contents


def test_bytes_are_base64(stage: Stage, pipeline: Answering) -> None:
    data = bytes(range(256))
    pipeline.answer = Content(data, "image/png", {})
    body = fetch(stage, mode="raw").json
    assert (base64.b64decode(body["content"]), body["encoding"]) == (data, "base64")
    assert body["meta"]["content_type"] == "image/png"


@pytest.mark.parametrize(
    ("body", "linked"),
    [(b"x" * 4_000_000, False), (b"x" * 4_000_001, True), (b'"' * 3_000_000, True), (b"", False)],
    ids=["4 MB", "over", "escapes", "empty"],
)
def test_a_large_content_is_behind_a_link(stage: Stage, pipeline: Answering, body: bytes, linked: bool) -> None:
    pipeline.answer = Content(body, "text/plain; charset=utf-8", {"chars": len(body)})
    reply = fetch(stage)
    assert (reply.status, reply.size < 6_000_000) == (200, True)
    assert ("content" in reply.json, "content_url" in reply.json) == (not linked, linked)
    assert reply.json["meta"]["chars"] == len(body)
    if linked:
        assert re.search(r"/answers/[0-9a-f]{32}\?.*Expires=300", reply.json["content_url"])
        with urlopen(reply.json["content_url"]) as answer:
            assert (answer.read(), answer.headers["content-type"]) == (body, "text/plain; charset=utf-8")
    else:
        assert reply.json["content"].encode() == body


# errors


@pytest.mark.parametrize("code", sorted(TARGET_CODES - {"busy"}))
def test_a_targets_error_is_the_answers(stage: Stage, pipeline: Answering, code: str) -> None:
    pipeline.answer = TargetFailed(code, "What happened.", "What to do.", status=404, meta={"warnings": ["So."]})
    reply = fetch(stage)
    assert (reply.code, reply.status) == (code, TARGET_STATUS.get(code, 422))
    assert (reply.json["target_status"], reply.json["meta"]) == (404, {"warnings": ["So."]})
    assert (reply.json["detail"], reply.json["hint"]) == ("What happened.", "What to do.")
    assert "retry-after" not in reply.headers


@pytest.mark.parametrize(("retry_after", "header"), [(None, "10"), (2.2, "3"), (0.0, "0"), (86_400.0, "86400")])
def test_a_busy_target_says_when_to_come_back(
    stage: Stage, pipeline: Answering, retry_after: float | None, header: str
) -> None:
    pipeline.answer = TargetBusy("The server answered 429.", retry_after=retry_after, status=429)
    reply = fetch(stage)
    assert (reply.code, reply.status, reply.headers["retry-after"]) == ("busy", 503, header)
    assert (reply.json["target_status"], reply.json["meta"]) == (429, None)


@pytest.mark.parametrize(
    ("status", "options", "asked"),
    [
        (502, {"recover": True}, True), (522, {"recover": True}, True), (503, {}, False),
        (429, {"recover": True}, False), (None, {"recover": True}, False),
    ],
)  # fmt: skip
def test_a_copy_is_looked_for_while_a_server_is_in_trouble(
    stage: Stage, pipeline: Answering, status: int | None, options: dict[str, Any], asked: bool
) -> None:
    pipeline.answer = TargetBusy("It is away.", retry_after=7.0, status=status)
    pipeline.copy = Content(b"# Copy", TEXT, {"status": 200})
    reply = fetch(stage, **options)
    assert len(pipeline.calls) == 1
    if not asked:
        assert (reply.status, reply.code, pipeline.gone) == (503, "busy", [])
        return
    assert (reply.status, reply.json["content"]) == (200, "# Copy")
    [(gone, left_s)] = pipeline.gone
    assert (gone.code, gone.status, gone.detail) == ("busy", status, "It is away.")
    assert TARGET_SECONDS - 5 < left_s <= TARGET_SECONDS


def test_a_busy_page_without_a_copy_is_busy(stage: Stage, pipeline: Answering) -> None:
    pipeline.answer = TargetBusy("It is away.", retry_after=7.0, status=503)
    reply = fetch(stage, recover=True)
    assert (reply.status, reply.code, reply.headers["retry-after"]) == (503, "busy", "7")
    assert reply.json["target_status"] == 503
    pipeline.copy = TargetFailed("empty", "The copy is empty.", "Read the page.", status=200)
    assert fetch(stage, recover=True).code == "empty"


def test_a_fault_of_ours_is_the_targets_and_in_the_log(
    stage: Stage, pipeline: Answering, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.answer = RuntimeError("s3cret")
    # Where pytest listens depends on what was set up before it.
    monkeypatch.setattr(logging.getLogger("sift"), "propagate", False)
    log = logging.getLogger("sift.api.immediate")
    caplog.set_level(logging.ERROR, log.name)
    log.addHandler(caplog.handler)
    try:
        reply = fetch(stage)
    finally:
        log.removeHandler(caplog.handler)
    assert (reply.status, reply.code, reply.json["target_status"]) == (500, "crashed", None)
    assert b"s3cret" not in reply.raw
    [record] = [record for record in caplog.records if record.name == "sift.api.immediate"]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "s3cret"
    pipeline.answer = Unavailable("PutObject: SlowDown")
    assert fetch(stage).code == "unavailable"


@pytest.mark.parametrize("key", [None, "sift_0123456789ab_" + "0" * 64, "nonsense"])
def test_a_key_is_needed(stage: Stage, pipeline: Answering, key: str | None) -> None:
    reply = stage.request("POST", "/v1/fetch", {"url": URL}, key=key)
    assert (reply.status, reply.code, pipeline.calls) == (401, "unauthenticated", [])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{", 400, "malformed_json"),
        ("[]", 400, "malformed_json"),
        (None, 400, "malformed_json"),
        ({}, 422, "invalid_request"),
        ({"url": 7}, 422, "invalid_request"),
        ({"url": ""}, 422, "invalid_request"),
        ({"url": "https://example.com/" + "a" * 8_192}, 422, "invalid_request"),
        ({"url": URL, "window": 3}, 422, "invalid_request"),
        ({"url": URL, "options": {"mode": "pretty"}}, 422, "unsupported_option"),
        ({"url": URL, "options": {"colour": "red"}}, 422, "unsupported_option"),
        ('{"url": "' + "a" * 5_000_000 + '"}', 413, "request_too_large"),
    ],
)
def test_a_request_that_is_refused(stage: Stage, pipeline: Answering, body: Any, status: int, code: str) -> None:
    reply = stage.request("POST", "/v1/fetch", body)
    assert (reply.status, reply.code, pipeline.calls) == (status, code, [])


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"jq": ".", "grep": "a"}, "options.grep"), ({"jq": ".", "mode": "article"}, "options.jq"),
        ({"mode": "raw", "pages": "1"}, "options.pages"), ({"context": 1}, "options.context"),
    ],
)  # fmt: skip
def test_options_that_clash_are_refused(stage: Stage, pipeline: Answering, options: dict[str, Any], field: str) -> None:
    reply = fetch(stage, **options)
    assert (reply.status, reply.code, pipeline.calls) == (422, "unsupported_option", [])
    assert [wrong["field"] for wrong in reply.json["fields"]] == [field]
    assert reply.json.keys().isdisjoint({"target_status", "index", "meta"})


def test_each_function_has_its_own_routes(stage: Stage, pipeline: Answering) -> None:
    """API Gateway sends no other request; one that came all the same would be refused."""
    headers = {"authorization": f"Bearer {stage.key}"}
    event = make_event("POST", "/v1/fetch", {"url": URL}, headers, {}, in_base64=False)
    answer = stage.deployment.functions["api"].lambda_handler(event, context())
    assert (answer["statusCode"], json.loads(answer["body"])["code"]) == (404, "not_found")
    event = make_event("GET", "/v1/jobs", None, headers, {}, in_base64=False)
    answer = stage.deployment.functions["fetch_now"].lambda_handler(event, context())
    assert (answer["statusCode"], json.loads(answer["body"])["code"]) == (404, "not_found")


# Powertools reads the files of its page without closing them.
@pytest.mark.filterwarnings("ignore:unclosed file.*swagger_ui:ResourceWarning")
def test_the_route_is_in_the_served_document(stage: Stage) -> None:
    served = stage.get("/openapi.json", key=None).json
    assert served["paths"]["/v1/fetch"]["post"]["tags"] == ["fetch"]
    assert b"/v1/fetch" in stage.get("/docs", key=None).raw


# the real pipeline


@pytest.fixture
def site(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A site that may be fetched, by the real pipeline; its processes end with the test."""
    from sift.content import pipeline

    made: list[pipeline.Pipeline] = []

    class Kept(pipeline.Pipeline):
        def __init__(self, settings: pipeline.PipelineSettings, **more: Any) -> None:
            super().__init__(settings, **more)
            made.append(self)

    server = Loopback()
    monkeypatch.setattr(pipeline, "Pipeline", Kept)
    monkeypatch.setenv("GUARD_ALLOW", server.allow)
    yield server
    for one in made:
        environment.run(one.aclose())
    server.close()


PAGE = (
    "<!doctype html><html lang=en><head><title>Tides</title></head><body><nav>Menu</nav><article><h1>Tides</h1>"
    f"<p>{'The tide at the harbour turns twice a day, and the keepers of the lock write it down. ' * 4}</p>"
    "</article></body></html>"
).encode()


def test_a_real_page(stage: Stage, site: Loopback) -> None:
    site.routes["/tides"] = respond(PAGE)
    body = fetch(stage, site.url("/tides"), mode="article").json
    assert "turns twice a day" in body["content"]
    assert "Menu" not in body["content"]
    assert (body["meta"]["title"], body["meta"]["media_type"]) == ("Tides", "text/html")
    assert body["meta"]["content_type"].startswith("text/markdown")


def test_real_errors(stage: Stage, site: Loopback) -> None:
    site.routes["/x.png"] = respond(b"\x89PNG\r\n\x1a\n" + bytes(99), content_type="image/png")
    site.routes["/busy"] = respond(status=503, headers=("Retry-After: 7",))
    for url, options, status, code, target_status in (
        (site.url("/none"), {}, 502, "http_error", 404),
        (site.url("/x.png"), {}, 422, "unsupported_media", 200),
        (site.url("/x.png"), {"pages": "0"}, 422, "bad_pages", None),
        (site.url("/busy"), {"recover": True}, 503, "busy", 503),
        ("http://169.254.169.254/latest/meta-data/", {}, 422, "blocked_address", None),
        ("ftp://example.com/", {}, 422, "invalid_url", None),
        ("nothing", {"recover": True}, 422, "invalid_url", None),
    ):
        reply = fetch(stage, url, **options)
        assert (reply.status, reply.code, reply.json["target_status"]) == (status, code, target_status), url
    assert fetch(stage, site.url("/x.png")).json["meta"]["media_type"] == "image/png"


def test_a_real_recovery(stage: Stage, site: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    wayback = Wayback()
    try:
        monkeypatch.setenv("GUARD_ALLOW", f"{site.allow},{wayback.allow}")
        monkeypatch.setenv("ARCHIVE_API", wayback.api)
        monkeypatch.setenv("ARCHIVE_REPLAY", wayback.replay)
        gone = fetch(stage, site.url("/gone"), recover=True)
        assert (gone.status, gone.json["target_status"]) == (502, 404)
        assert "gave no copy" in gone.json["meta"]["warnings"][0]
        wayback.announce(site.url("/gone"))
        wayback.capture(site.url("/gone"), PAGE)
        body = fetch(stage, site.url("/gone"), recover=True).json
        assert "turns twice a day" in body["content"]
        assert body["meta"]["recovered"]["original_status"] == 404
        site.routes["/away"] = respond(status=503, headers=("Retry-After: 7",))
        busy = fetch(stage, site.url("/away"), recover=True)
        assert (busy.status, busy.code, busy.headers["retry-after"]) == (503, "busy", "7")
        assert "no copy" in busy.json["meta"]["warnings"][0]
        wayback.announce(site.url("/away"))
        wayback.capture(site.url("/away"), PAGE)
        body = fetch(stage, site.url("/away"), recover=True).json
        assert (body["meta"]["recovered"]["original_status"], body["meta"]["recovered"]["original_error"]) == (
            503,
            "busy",
        )
    finally:
        wayback.server.close()
