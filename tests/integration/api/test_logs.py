"""A whole life of jobs at the lowest log level: lines are JSON with ids and hosts, and no secret is on any of them."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from sift.clock import SystemClock
from sift.content import client
from sift.errors import Unavailable
from sift.services.sweep import QUIET_MS
from sift.services.webhook_secrets import WebhookSecrets
from tests.docs.pages import names, read, rows, section
from tests.integration.api.stage import Stage, closing_pipelines, context
from tests.integration.api.test_functions import fetch_function, later, notify_function, records, sweep_function


class Secrets:
    """Words that stand nowhere else, by where they are planted."""

    def __init__(self) -> None:
        self.planted: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        return self.planted.setdefault(place, f"Zq{place}9x4k")

    def found_in(self, text: str) -> set[str]:
        return {place for place, word in self.planted.items() if word.lower() in text.lower()}


@dataclass
class Site:
    """A loopback site: an answer by path, and every request as it came."""

    routes: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version: ClassVar[str] = "HTTP/1.1"

        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found.seen.append(f"{self.requestline}\n{self.headers}\n{sent.decode()}")
            status, headers, body = found.routes[self.path.partition("?")[0]]
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), "Connection": "close", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    found.address = f"127.0.0.1:{server.server_port}"
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


class Logs:
    """What the functions write: their own stream, and what any other logger passes to the root's handler."""

    def __init__(self) -> None:
        self.own, self.others = io.StringIO(), io.StringIO()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.own.getvalue().splitlines()]

    def about(self, message: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if str(line["message"]).startswith(message)]


@pytest.fixture
def logs(stage: Stage) -> Iterator[Logs]:
    """Everything at DEBUG, the root with a handler as Lambda's: it leaves the lines of sift to sift's own."""
    found = Logs()
    own, root, cloud = (logging.getLogger(name) for name in ("sift", None, "moto"))
    (handler,) = [one for one in own.handlers if isinstance(one, logging.StreamHandler)]
    others = logging.StreamHandler(found.others)
    others.addFilter(lambda record: record.name.partition(".")[0] != "sift")
    before, levels = handler.setStream(found.own), (own.level, root.level, cloud.level)
    root.addHandler(others)
    own.setLevel(logging.DEBUG)
    root.setLevel(logging.DEBUG)
    cloud.setLevel(logging.WARNING)  # it stands for AWS, and is in this process by chance
    yield found
    for logger, level in zip((own, root, cloud), levels, strict=True):
        logger.setLevel(level)
    root.removeHandler(others)
    handler.setStream(before or io.StringIO())


PAGE = "<html><head><title>{0}</title></head><body><article><h1>{0}</h1>" + "<p>{0} turns twice a day.</p>" * 9


def plant(secrets: Secrets, site: Site) -> list[dict[str, Any]]:
    """Pages that are read, that fail, redirect and break their readers; the targets that meet them all."""
    html, text = {"Content-Type": "text/html"}, {"Content-Type": "text/plain"}
    body = secrets("body").encode()
    reply = {"choices": [{"message": {"content": json.dumps({"answer": secrets("answer"), "quotes": []})}}]}
    site.routes = {
        "/good": (200, html | {"Set-Cookie": f"a={secrets('setcookie')}"}, PAGE.format(secrets("body")).encode()),
        "/gone": (404, html, body),
        "/busy": (429, text | {"Retry-After": secrets("retryafter")}, body),
        "/moved": (302, {"Location": f"http://{site.address}/good?token={secrets('location')}"}, b""),
        "/away": (302, {"Location": f"http://ann:{secrets('locationuserinfo')}@10.0.0.1/?{secrets('away')}"}, b""),
        "/cut": (200, html | {"Content-Length": "999"}, body),
        "/broken": (200, html | {"Content-Encoding": "gzip"}, gzip.compress(body)[:-9] + body),
        "/odd": (200, {"Content-Type": f"application/{secrets('type')}; x={secrets('type')}"}, b"\0\1" + body),
        "/data": (200, {"Content-Type": "application/json"}, json.dumps({"key": secrets("body")}).encode()),
        f"/{secrets('path')}": (200, {"Content-Type": "application/json"}, b"{}"),
        "/pdf": (200, {"Content-Type": "application/pdf"}, b"%PDF-1.7\n" + body),
        "/notes": (200, text, (secrets("body") + " is high. \n").encode() * 9),
        f"/{secrets('hookpath')}": (500, {"Location": f"/{secrets('hooklocation')}"}, secrets("hookanswer").encode()),
        f"/{secrets('gateway')}/chat/completions": (200, {}, json.dumps(reply).encode()),
    }
    headers = {"Authorization": f"Bearer {secrets('authorization')}", "Cookie": f"sid={secrets('cookie')}"}
    base, query = f"http://{site.address}", f"?key={secrets('query')}#{secrets('fragment')}"
    plain = ("good", "gone", "busy", "moved", "away", "cut", "broken", "odd", "pdf", "fault")
    targets: list[dict[str, Any]] = [
        {"url": f"{base}/{name}{query}", "id": secrets("label"), "options": {"headers": headers}} for name in plain
    ]
    return [
        *targets,
        {"url": f"http://{secrets('user')}:{secrets('password')}@{site.address}/good{query}"},
        {"url": f"{base}/{secrets('path')}", "options": {"jq": f'error("{secrets("jq")}")'}},
        {"url": f"{base}/data", "options": {"jq": f".{secrets('jqsyntax')} |"}},
        {"url": f"{base}/data", "options": {"jq": f'"{secrets("jqloop")}" | repeat(.)'}},
        {"url": f"{base}/notes", "options": {"grep": f"{secrets('grep')}|high"}},
        {"url": f"{base}/notes", "options": {"question": f"how high is {secrets('question')}"}},
        {"url": f"{base}/notes", "options": {"pages": "7"}},
        {"url": f"https://{site.address}/{secrets('tlspath')}"},
    ]


def refuse(stage: Stage, secrets: Secrets, job: str) -> None:
    """Requests that are refused, each with a secret where callers put them by mistake."""
    scheme, _, secret = stage.key.rpartition("_")
    secrets.planted["key"] = secret
    wrong: list[tuple[int, Any]] = [
        (401, stage.get(job, key=f"{scheme}_{secrets('wrongsecret')}")),
        (401, stage.get(job, key=secrets("bearer"))),
        (401, stage.get(job, key=f"eyJhbGciOiJSUzI1NiJ9.{secrets('token')}.{secrets('signature')}")),
        (401, stage.get(job, key=None, headers={"x-api-key": secrets("apikey")})),
        (401, stage.get(job, key=None, headers={"authorization": f"Basic {secrets('basic')}"})),
        (400, stage.get(f"{job}/targets", cursor=secrets("cursor"))),
        (422, stage.get("/v1/jobs", **{secrets("parameter"): secrets("value")})),
        (404, stage.get(f"/v1/jobs/{secrets('jobid')}")),
        (404, stage.get(f"{job}/targets/{secrets('index')}")),
        (400, stage.request("POST", "/v1/jobs", f'{{"{secrets("malformed")}": ')),
        (422, stage.request("POST", "/v1/jobs", {secrets("field"): secrets("fieldvalue")})),
        (422, stage.request("POST", "/v1/jobs", {"targets": [{"url": f"ftp://{secrets('badurl')}/"}]})),
        (422, stage.request("POST", "/v1/jobs", {"targets": [{"url": 1}], "metadata": {secrets("name"): "x" * 999}})),
    ]
    for expected, reply in wrong:
        assert reply.status == expected, reply.raw


def break_parts(stage: Stage, secrets: Secrets, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults of our own, whose exceptions say all that they should not."""
    fetch = client.GuardedClient.fetch

    async def faulty(self: Any, url: str, deadline_s: float, headers: Any = None) -> Any:
        if "/fault" in url:
            try:
                raise KeyError(f"{url} {headers} {secrets('cause')}")
            except KeyError as cause:
                error = RuntimeError(f"{url} {headers} {secrets('exception')}")
                error.add_note(secrets("note"))
                raise error from cause
        return await fetch(self, url, deadline_s, headers)

    monkeypatch.setattr(client.GuardedClient, "fetch", faulty)


def live(stage: Stage, secrets: Secrets, site: Site, monkeypatch: pytest.MonkeyPatch) -> str:
    """Submissions, work, faults, repairs and reads; the id of the job that met everything."""
    monkeypatch.setenv("GUARD_ALLOW", site.address)
    monkeypatch.setenv("QUESTION_MODEL", "small-model")
    monkeypatch.setenv("GATEWAY_URL", f"http://{site.address}/{secrets('gateway')}")
    targets = plant(secrets, site)
    break_parts(stage, secrets, monkeypatch)
    hook = asyncio.run(WebhookSecrets(stage.store, SystemClock()).renew("acme", "ann"))
    secrets.planted["hooksecret"] = hook.removeprefix("whsec_")
    webhook = {
        "url": f"http://{site.address}/{secrets('hookpath')}?key={secrets('hookquery')}",
        "events": ["target.done", "job.ended"],
        "headers": {"Authorization": f"Bearer {secrets('hookheader')}"},
        "metadata": {"note": secrets("hookmetadata")},
    }
    more = {"metadata": {"note": secrets("metadata")}, "fresh": False, "webhook": webhook}
    sent = {"idempotency-key": secrets("idempotency")}
    reply = stage.request("POST", "/v1/jobs", {"targets": targets, **more}, headers=sent)
    assert reply.status == 202, reply.raw
    job_id: str = reply.json["id"]
    job = f"/v1/jobs/{job_id}"
    assert stage.request("POST", "/v1/jobs", {"targets": targets[:1]}, headers=sent).code == "idempotency_mismatch"
    sqs = stage.deployment.client("sqs")
    for foreign in (secrets("message"), json.dumps({"v": secrets("version"), "url": secrets("message")})):
        sqs.send_message(QueueUrl=stage.queue_url, MessageBody=foreign)
    with closing_pipelines():
        for _ in range(3):
            fetch_function(stage)
        now = [
            stage.request("POST", "/v1/fetch", {"url": t["url"], "options": t.get("options", {})}) for t in targets[:2]
        ]
        assert [reply.status for reply in now] == [200, 502]
        refused = stage.request("POST", "/v1/fetch", {"url": f"http://10.0.0.1/{secrets('private')}"})
        assert refused.status == 422
    refuse(stage, secrets, job)
    for path in (job, f"{job}/targets", f"{job}/targets/0", f"{job}/targets/0/content", "/v1/jobs"):
        assert stage.get(path).status == 200
    later(monkeypatch, QUIET_MS + 60_000)
    sqs.purge_queue(QueueUrl=stage.queue_url)
    assert sweep_function(stage)["resent"] == 1, "the busy one, whose message was lost"
    assert stage.request("POST", f"{job}/cancel").status == 200
    sqs.send_message(QueueUrl=stage.notify_url, MessageBody=secrets("noticed"))
    notify_function(stage)
    assert any("hookheader" in secrets.found_in(request) for request in site.seen)
    fail(stage, secrets, job, monkeypatch)
    return job_id


def fail(stage: Stage, secrets: Secrets, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function meets a fault of ours that nobody foresaw."""

    async def fault(*arguments: Any, **names: Any) -> Any:
        raise RuntimeError(f"http://ann:{secrets('fault')}@example.com/")

    async def away(*arguments: Any, **names: Any) -> Any:
        raise Unavailable("send_message_batch: ServiceUnavailable") from OSError(secrets("service"))

    with monkeypatch.context() as patch:
        patch.setattr("sift.store.dynamo.DynamoStore.get_job", fault)
        assert stage.get(job).code == "internal"
    with monkeypatch.context() as patch:
        patch.setattr("sift.queue.sqs.SqsQueue.send", away)
        stage.submit(f"https://example.com/?{secrets('unsent')}")
    with monkeypatch.context() as patch:
        patch.setattr("sift.store.dynamo.DynamoStore.claim", fault)
        body = json.dumps(
            {"v": 1, "job": job.rpartition("/")[2], "index": 2, "url": f"https://example.com/?{secrets('url')}"}
        )
        stage.deployment.client("sqs").send_message(QueueUrl=stage.queue_url, MessageBody=body)
        assert body in fetch_function(stage)
    with monkeypatch.context() as patch:
        patch.setattr("sift.store.dynamo.DynamoStore.used_shards", fault)
        with pytest.raises(Exception, match=r"^RuntimeError$"):
            sweep_function(stage)
    with monkeypatch.context() as patch:
        patch.setattr("sift.services.work.Worker.run_batch", fault)
        with pytest.raises(Exception, match=r"^RuntimeError$") as failure:
            stage.deployment.functions["fetch"].lambda_handler({"Records": records([])}, context())
        assert failure.value.__suppress_context__, "Lambda prints what it is told of an exception"


def test_lines_say_what_they_are_about_and_no_secret_is_on_them(
    stage: Stage, logs: Logs, site: Site, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    secrets = Secrets()
    job_id = live(stage, secrets, site, monkeypatch)
    printed = capfd.readouterr()
    written = logs.own.getvalue() + logs.others.getvalue() + printed.out + printed.err
    assert secrets.found_in(written) == set()

    # They were really there: the site saw what is sent, the table holds what is stored.
    assert secrets.found_in("".join(site.seen)) >= {"query", "authorization", "cookie", "location", "question"}
    stored = asyncio.run(stage.store.get_job(job_id))
    assert stored is not None
    assert secrets.found_in(str(stored)) >= {"metadata"}
    assert len(secrets.planted) > 40
    check_lines(logs, job_id)


def check_lines(logs: Logs, job_id: str) -> None:
    """Ids and hosts are where they are needed."""
    listed = {name for row in rows(section(read("docs/operations.md"), "Keys of a line")) for name in names(row[0])}
    fixed = {"level", "location", "message", "timestamp", "service", "cold_start"}
    fixed |= {f"function_{what}" for what in ("name", "memory_size", "arn")}
    told = {name for line in logs.lines if line["message"] != "swept" for name in line}
    assert told - fixed == listed
    for line in logs.lines:
        assert set(line) >= {"level", "message", "timestamp", "service", "function_request_id"}, line
    ended = [*logs.about("a target is done"), *logs.about("a target has failed")]
    assert len(ended) > 10
    stays = logs.about("a target stays on the queue")
    assert stays
    for line in [*ended, *logs.about("the pipeline failed"), *stays]:
        assert line["job_id"] == job_id
        assert isinstance(line["index"], int)
        assert line["host"] in {"127.0.0.1", "example.com"}
    assert {line["code"] for line in logs.about("a target has failed")} >= {"http_error", "bad_jq", "crashed"}
    (crash,) = logs.about("the pipeline failed")
    assert crash["exception_name"] == "RuntimeError"
    assert crash["exception"].startswith("builtins.RuntimeError\n")
    assert "builtins.KeyError" in crash["exception"]
    assert "sift/content/pipeline.py" in crash["exception"]
    answered = logs.about("answered")
    assert {line["status"] for line in answered} >= {200, 202, 400, 401, 404, 409, 422, 500}
    for line in answered:
        assert line["request_id"]
        assert line["route"].startswith(("GET /v1/jobs", "POST /v1/jobs", "POST /v1/fetch"))
        assert (line["status"] >= 400) == ("code" in line)
    fetched = [line for line in answered if line["route"] == "POST /v1/fetch"]
    assert [line["host"] for line in fetched] == ["127.0.0.1", "127.0.0.1", "10.0.0.1"]
    assert any(line.get("job_id") == job_id and line["route"] == "GET /v1/jobs/{id}/targets" for line in answered)
    (unsent,) = logs.about("the first targets wait")
    assert unsent["request_id"], "what a request is about goes along to the loop that works on it"
    assert unsent["job_id"] in {line["job_id"] for line in logs.about("submitted") if not line["reused"]} - {job_id}
    (resent,) = logs.about("1 targets are sent again")
    assert resent["job_id"] == job_id
    assert len(logs.about("the invocation failed")) == 2
