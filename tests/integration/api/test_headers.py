"""A caller's own headers: taken in with the job, sent by the worker, and shown by nobody."""

from __future__ import annotations

import asyncio
import json
import logging
import zlib
from collections.abc import Mapping
from typing import Any

import pytest

from sift.errors import TargetBusy
from sift.queue.ports import Received
from sift.targets import Content
from tests.integration.api.stage import NOT_THERE, Stage, submit_refused

URL = "https://example.com/"
HEADERS = {"Authorization": "Bearer s3cret-token", "Cookie": "session=s3cret-session", "Accept": "text/plain"}


def stored(stage: Stage) -> dict[str, str]:
    """Every item of the table as text, what is compressed unpacked, by its keys."""
    found = {}
    for item in stage.deployment.client("dynamodb").scan(TableName=stage.table)["Items"]:
        texts = [json.dumps({name: value for name, value in item.items() if "B" not in value})]
        texts += [zlib.decompress(bytes(value["B"])).decode() for value in item.values() if "B" in value]
        found[f"{item['pk']['S']} {item['sk']['S']}"] = "".join(texts)
    return found


def test_they_are_sent_and_shown_nowhere(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="sift")
    sent: dict[str, Mapping[str, Any]] = {}

    async def fetch(url: str, options: Mapping[str, Any], deadline_s: float, *, gone: Any = None) -> Content:
        sent[url] = options["headers"]
        if url.endswith("failed"):
            raise NOT_THERE
        if url.endswith("broken"):
            raise RuntimeError("a fault of our own")
        if url.endswith("busy"):
            raise TargetBusy("It answered 429.", status=429)
        return Content(b"there", "text/plain", {"status": 200})

    reply = stage.request(
        "POST",
        "/v1/jobs",
        {
            "targets": [{"url": f"{URL}{name}"} for name in ("done", "failed", "broken", "busy")],
            "options": {"headers": HEADERS},
        },
    )
    assert reply.status == 202
    job_id = reply.json["id"]
    worker = stage.worker(fetch)
    received = [Received(m["MessageId"], m["ReceiptHandle"], m["Body"]) for m in stage.receive()]
    asyncio.run(worker.run_batch(received, lambda: 90.0))
    assert set(sent) == {f"{URL}{name}" for name in ("done", "failed", "broken", "busy")}
    assert all(headers == {name.lower(): value for name, value in HEADERS.items()} for headers in sent.values())

    job = f"/v1/jobs/{job_id}"
    paths = ("/v1/jobs", job, f"{job}/targets/0", f"{job}/targets/1", f"{job}/targets/3", f"{job}/targets/0/content")
    answers = [reply.raw, stage.get(f"{job}/targets", content=True).raw, *(stage.get(path).raw for path in paths)]
    assert b"s3cret" not in b"".join(answers)
    assert "s3cret" not in caplog.text

    # Only what may have to run again holds them: the targets as submitted, and failed ones for a retry.
    holding = {key for key, text in stored(stage).items() if "s3cret" in text}
    segment = f"JOB#{job_id}#0"
    assert holding == {f"{segment} SPECS", f"{segment} T#000001", f"{segment} T#000002"}


def test_a_retry_sends_them_again(stage: Stage) -> None:
    body = {"targets": [{"url": URL, "options": {"headers": HEADERS}}]}
    job_id = stage.request("POST", "/v1/jobs", body).json["id"]
    stage.work({URL: NOT_THERE})
    retried = stage.request("POST", f"/v1/jobs/{job_id}/retry")
    assert retried.status == 202
    assert b"s3cret" not in retried.raw
    (message,) = stage.receive()
    assert json.loads(message["Body"])["options"]["headers"] == {n.lower(): value for n, value in HEADERS.items()}


def test_they_are_part_of_the_work(stage: Stage) -> None:
    def submit(options: dict[str, Any], own: dict[str, Any]) -> tuple[int, str]:
        reply = stage.request("POST", "/v1/jobs", {"targets": [{"url": URL, "options": own}], "options": options})
        return reply.status, reply.json.get("id", "")

    first = submit({"headers": {"Accept": "text/plain", "DNT": "1"}}, {})
    stage.work()
    assert submit({}, {"headers": {"dnt": "1", "ACCEPT": "text/plain"}}) == (200, first[1])
    # A target's headers take the place of the job's, all of them.
    assert submit({"headers": {"DNT": "1"}}, {"headers": {"Accept": "text/plain"}})[0] == 202
    stage.work()
    assert submit({}, {"headers": {"Accept": "text/html", "DNT": "1"}})[0] == 202


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"Host": "s3cret"}, "Host"),
        ({"X-Forwarded-For": "s3cret"}, "X-Forwarded-For"),
        ({"authorization": "s3cret\r\nHost: a"}, "Authorization"),
        ({"Cookie": "s3cret" * 1_000}, "Cookie"),
        ({"Cookie": ["s3cret"]}, "Cookie"),
        ({"Cookie": "s3cret", "COOKIE": "s3cret"}, "Cookie"),
    ],
)
def test_a_header_that_is_refused_is_named_and_not_shown(stage: Stage, headers: dict[str, Any], named: str) -> None:
    for body in (
        {"targets": [{"url": URL, "options": {"headers": headers}}]},
        {"targets": [{"url": URL}], "options": {"headers": headers}},
    ):
        reply = submit_refused(stage, body)
        assert (reply.status, reply.code) == (422, "unsupported_option")
        assert named in reply.json["detail"]
        assert b"s3cret" not in reply.raw
