"""The fetch worker and the sweeper, called as Lambda calls them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from sift.clock import SystemClock
from sift.errors import TargetBusy
from sift.services.sweep import QUIET_MS
from sift.targets import Content, FetchOptions
from tests.integration.api.stage import NOT_THERE, Stage, closing_pipelines, context, read_event

URL = "https://example.com/"


def records(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as an event source mapping hands them over."""
    return [
        {
            **read_event("fetch-batch")["Records"][0],
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
        }
        for message in messages
    ]


def fetch_function(stage: Stage, seconds: float = 90.0) -> list[str]:
    """One invocation with what the queue has; the bodies of the messages that it kept. The rest is deleted."""
    return invoke(stage, "fetch", stage.queue_url, seconds)


def invoke(stage: Stage, name: str, queue_url: str, seconds: float = 90.0) -> list[str]:
    """The same of any function that a queue calls."""
    messages = stage.receive(queue_url)
    answer = stage.deployment.functions[name].lambda_handler({"Records": records(messages)}, context(seconds))
    assert set(answer) == {"batchItemFailures"}
    kept = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    assert kept <= {message["MessageId"] for message in messages}
    sqs = stage.deployment.client("sqs")
    for message in messages:
        if message["MessageId"] not in kept:
            sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
    return [message["Body"] for message in messages if message["MessageId"] in kept]


def notify_function(stage: Stage, seconds: float = 30.0) -> list[str]:
    """One invocation with what the queue of notices has; the bodies of the messages that it kept."""
    sqs = stage.deployment.client("sqs")
    asked = {"MaxNumberOfMessages": 10, "MessageSystemAttributeNames": ["ApproximateReceiveCount"]}
    messages = sqs.receive_message(QueueUrl=stage.notify_url, **asked).get("Messages", [])
    answer = stage.deployment.functions["notify"].lambda_handler({"Records": records(messages)}, context(seconds))
    kept = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    for message in messages:
        if message["MessageId"] not in kept:
            sqs.delete_message(QueueUrl=stage.notify_url, ReceiptHandle=message["ReceiptHandle"])
    return [message["Body"] for message in messages if message["MessageId"] in kept]


def fire_event(stage: Stage, event: Any) -> dict[str, Any]:
    """One asynchronous invocation of the function for events; what it raises is what Lambda sees."""
    made: dict[str, Any] = stage.deployment.functions["schedule"].lambda_handler(event, context(60.0))
    return made


@pytest.fixture
def answers(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> dict[str, Content | Exception]:
    """What the pipeline answers, by URL."""
    found: dict[str, Content | Exception] = {}

    class Pipeline:
        def __init__(self, settings: Any, answerer: Any) -> None:
            assert answerer is None
            assert (settings.user_agent, settings.guard_allow, settings.guard_deny) == ("sift/0.1", "", "")

        async def run(self, url: str, options: FetchOptions, deadline_s: float, *, gone: Any = None) -> Content:
            answer = found.get(url, Content(f"{url} {options.mode}".encode(), "text/plain"))
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr("sift.content.pipeline.Pipeline", Pipeline)
    return found


def test_a_batch(stage: Stage, answers: dict[str, Content | Exception]) -> None:
    answers |= {f"{URL}404": NOT_THERE, f"{URL}busy": TargetBusy("It answered 429.", status=429)}
    job_id = stage.submit(URL, f"{URL}404", f"{URL}busy", options={"mode": "raw"})
    (busy,) = fetch_function(stage)
    assert json.loads(busy)["url"] == f"{URL}busy"
    state = stage.state(job_id)
    assert (state.status, state.done, state.failed, list(state.flight)) == ("running", 1, 1, [2])
    assert state.flight[2].busy_since is not None
    assert stage.receive() == [], "it is hidden for a while"
    slot = stage.get(f"/v1/jobs/{job_id}/targets/0").json
    assert slot["content"] == f"{URL} raw"


def test_the_event_in_the_repository_leaves_nothing_behind(
    stage: Stage, answers: dict[str, Content | Exception]
) -> None:
    event = read_event("fetch-batch")
    answer = stage.deployment.functions["fetch"].lambda_handler(event, context())
    # Targets of a job that is gone are done with, and what is no message goes to the dead-letter queue.
    assert answer == {"batchItemFailures": []}
    dead = stage.deployment.client("sqs").receive_message(QueueUrl=stage.dead_url)["Messages"]
    assert [message["Body"] for message in dead] == ["not a target message"]


def test_a_whole_job_by_its_functions(stage: Stage, answers: dict[str, Content | Exception]) -> None:
    job_id = stage.submit(*(f"{URL}{number}" for number in range(25)), window=8)
    while stage.state(job_id).status != "done":
        assert fetch_function(stage) == []
    assert stage.stored()[1] == 0
    assert asyncio.run(stage.store.live_jobs(0)) == asyncio.run(stage.store.outbox(0)) == []


def test_without_time_nothing_is_begun(stage: Stage, answers: dict[str, Content | Exception]) -> None:
    job_id = stage.submit(URL, f"{URL}2")
    assert len(fetch_function(stage, seconds=20.0)) == 2
    assert stage.state(job_id).flight[0].claims == 0
    assert len(stage.receive()) == 2


def test_an_option_of_another_version_fails_its_target_only(
    stage: Stage, answers: dict[str, Content | Exception]
) -> None:
    job_id = stage.submit(URL, f"{URL}2")
    messages = stage.receive()
    messages[0]["Body"] = json.dumps(json.loads(messages[0]["Body"]) | {"options": {"later": "x"}})
    stage.deployment.functions["fetch"].lambda_handler({"Records": records(messages)}, context())
    slots = stage.get(f"/v1/jobs/{job_id}/targets").json["targets"]
    assert sorted(slot["status"] for slot in slots) == ["done", "failed"]
    (error,) = [slot["error"] for slot in slots if slot["error"]]
    assert error["code"] == "unsupported_option"


def sweep_function(stage: Stage) -> Mapping[str, Any]:
    report: Mapping[str, Any] = stage.deployment.functions["sweep"].lambda_handler(
        read_event("sweep-schedule"), context(55.0)
    )
    json.dumps(report)
    return report


def later(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    now = SystemClock().now_ms() + milliseconds
    monkeypatch.setattr("sift.clock.SystemClock.now_ms", lambda self: now)


def test_the_sweeper_sends_again_what_was_lost(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sweep_function(stage)["live"] == 0
    job_id = stage.submit(URL, f"{URL}2")
    stage.deployment.client("sqs").purge_queue(QueueUrl=stage.queue_url)
    assert sweep_function(stage)["resent"] == 0
    later(monkeypatch, QUIET_MS)
    report = sweep_function(stage)
    assert (report["live"], report["resent"], report["failed"]) == (1, 2, [])
    assert sweep_function(stage)["resent"] == 0
    stage.work()
    assert stage.state(job_id).status == "done"


def test_the_sweeper_ends_a_job_at_its_deadline(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = stage.submit(URL)
    later(monkeypatch, int(stage.environ["DEADLINE_SECONDS"]) * 1000)
    sweep_function(stage)
    job = stage.get(f"/v1/jobs/{job_id}").json
    assert (job["status"], job["error"]["code"]) == ("failed", "deadline")
    assert sweep_function(stage)["live"] == 0


PAGE = b"""<!doctype html><html lang="en"><head><title>Tides</title></head><body><nav><a href="/">Home</a></nav>
<article><h1>Tides</h1><p>The tide at the harbour turns twice a day, and the keepers of the lock write down when it
does, as they have done since the lock was built and the first boats came through it in the spring.</p>
<p>On the days after a new moon the water stands a hand higher than on others, and the gates stay closed for an hour
longer than the table in the office says they should.</p></article></body></html>"""


class _Site(BaseHTTPRequestHandler):
    heads: ClassVar[list[Message]] = []

    def do_GET(self) -> None:
        self.heads.append(self.headers)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the screen."""


@pytest.fixture
def site() -> Iterator[str]:
    _Site.heads.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("allowed", [True, False])
def test_the_real_pipeline(stage: Stage, monkeypatch: pytest.MonkeyPatch, site: str, allowed: bool) -> None:
    monkeypatch.setenv("GUARD_ALLOW", site if allowed else "")
    monkeypatch.setenv("USER_AGENT", "tide-reader/2 (+https://example.com/about)")
    job_id = stage.submit(f"http://{site}/tides")
    with closing_pipelines():
        assert fetch_function(stage) == []
    agents = {head["User-Agent"] for head in _Site.heads}
    assert agents == ({"tide-reader/2 (+https://example.com/about)"} if allowed else set())
    slot = stage.get(f"/v1/jobs/{job_id}/targets/0").json
    if allowed:
        assert slot["status"] == "done", slot
        assert "turns twice a day" in slot["content"]
        assert slot["media_type"].startswith("text/markdown")
        assert slot["meta"]["title"] == "Tides"
    else:
        assert (slot["status"], slot["error"]["code"]) == ("failed", "blocked_address")
