"""The functions of template.yaml, called as Lambda calls them, over the AWS services of a local cloud."""

from __future__ import annotations

import asyncio
import base64
import copy
import importlib.util
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock
from urllib.parse import urlencode

from sift import environment
from sift.blobs.s3 import S3Blobs
from sift.bootstrap import callers, workers
from sift.clock import Clock, SystemClock
from sift.errors import TargetFailed
from sift.events.eventbridge import EventBridgeBus
from sift.jobs import State
from sift.queue.ports import Received
from sift.queue.sqs import SqsDeadLetters, SqsQueue
from sift.services.advance import Advancer
from sift.services.fetching import FetchRunner
from sift.services.keys import KeyService
from sift.services.work import Worker
from sift.store.dynamo import DynamoStore
from sift.targets import Content
from sift_client.local.blueprint import Blueprint
from sift_client.local.cloud import Cloud
from sift_client.local.document import read_document
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint

ROOT = Path(__file__).parents[3]
#: A Lambda answer may have this many bytes (Lambda quotas: invocation payload, synchronous).
LAMBDA_BYTES = 6_291_556
FOLDERS = ("api", "fetch", "fetch_now", "inference", "assemble", "sweep", "schedule", "notify")
#: What an event source mapping calls the fields of a message.
MESSAGE_FIELDS = {"messageId": "MessageId", "receiptHandle": "ReceiptHandle", "body": "Body"}
_numbers = itertools.count()


def load_function(name: str) -> ModuleType:
    """functions/<name>/app.py as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"{name}_app", ROOT / "functions" / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_event(name: str) -> dict[str, Any]:
    """One of the events in events/."""
    event: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text(encoding="utf-8"))
    return event


def forget_process() -> None:
    """Close and forget what sift keeps for the life of a process."""
    if environment.runner.cache_info().currsize:
        environment.runner().close()
        environment.runner.cache_clear()
    environment.client.cache_clear()
    forget_services()


def forget_services() -> None:
    for cached in (
        callers.api, callers.fetch_now, callers.schedule, workers.assembler, workers.inference_worker,
        workers.notifier, workers.sweeper, workers.worker,
    ):  # fmt: skip
        cached.cache_clear()


@contextmanager
def closing_pipelines() -> Iterator[None]:
    """What functions make of pipelines in the meantime is closed at the end."""
    from sift.content import pipeline  # most tests do without

    made: list[pipeline.Pipeline] = []

    class Kept(pipeline.Pipeline):
        def __init__(self, settings: pipeline.PipelineSettings, **rest: Any) -> None:
            super().__init__(settings, **rest)
            made.append(self)

    with mock.patch.object(pipeline, "Pipeline", Kept):
        yield
    for one in made:
        environment.run(one.aclose())


class Deployment:
    """What template.yaml makes, for the whole session."""

    def __init__(self) -> None:
        self.cloud = Cloud()
        document = read_document(ROOT / "template.yaml", {})
        naming = Naming(document, "api", self.cloud.account, self.cloud.url, "http://127.0.0.1:9")
        self.blueprint: Blueprint = make_blueprint(document, naming)
        self.cloud.provision(self.blueprint)
        self.functions = {name: load_function(name) for name in FOLDERS}

    def client(self, service: str) -> Any:
        return self.cloud.client(service)


@dataclass(frozen=True)
class Reply:
    """An answer of the API function, as API Gateway would read it."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    size: int

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        """The code of a problem, which must be one."""
        body = self.json
        assert self.headers["content-type"] == "application/problem+json"
        assert set(body) >= {"type", "title", "status", "detail", "code", "hint", "request_id"}
        assert body["status"] == self.status
        assert body["request_id"]
        assert body["hint"]
        assert "Traceback" not in self.raw.decode()
        found: str = body["code"]
        return found


Answers = Mapping[str, Content | Exception]


class Stage:
    """A table, queues and functions of its own, for one test. `environ` is that of all functions together."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        number = next(_numbers)
        blueprint = deployment.blueprint
        self.table = f"jobs-{number}"
        tables, sqs = deployment.client("dynamodb"), deployment.client("sqs")
        tables.create_table(**{**blueprint.tables["JobsTable"].request, "TableName": self.table})
        attributes = dict(blueprint.queues["FetchQueue"].attributes)
        del attributes["RedrivePolicy"]
        self.queue_url: str = sqs.create_queue(QueueName=f"fetch-{number}", Attributes=attributes)["QueueUrl"]
        hooks = dict(blueprint.queues["NotifyQueue"].attributes)
        del hooks["RedrivePolicy"]
        self.notify_url: str = sqs.create_queue(QueueName=f"notify-{number}", Attributes=hooks)["QueueUrl"]
        self.given_up_url: str = sqs.create_queue(QueueName=f"given-up-{number}")["QueueUrl"]
        self.dead_url: str = sqs.create_queue(QueueName=f"dead-{number}")["QueueUrl"]
        attributes = dict(blueprint.queues["InferenceQueue"].attributes)
        del attributes["RedrivePolicy"]
        self.inference_url: str = sqs.create_queue(QueueName=f"inference-{number}", Attributes=attributes)["QueueUrl"]
        self.inference_dead_url: str = sqs.create_queue(QueueName=f"inference-dead-{number}")["QueueUrl"]
        self.assemble_url: str = sqs.create_queue(QueueName=f"assemble-{number}")["QueueUrl"]
        self.environ: dict[str, str] = {}
        # Of what two functions are told differently, such as the lease, the fetch function's counts.
        for name in sorted(blueprint.functions, key=lambda name: name == "FetchFunction"):
            self.environ |= blueprint.functions[name].environment
        self.environ |= {
            "TABLE_NAME": self.table,
            "FETCH_QUEUE_URL": self.queue_url,
            "ASSEMBLE_QUEUE_URL": self.assemble_url,
            "FETCH_DEAD_LETTER_QUEUE_URL": self.dead_url,
            "INFERENCE_QUEUE_URL": self.inference_url,
            "INFERENCE_DEAD_LETTER_QUEUE_URL": self.inference_dead_url,
            "NOTIFY_QUEUE_URL": self.notify_url,
            "NOTIFY_DEAD_LETTER_QUEUE_URL": self.given_up_url,
            "AWS_ENDPOINT_URL": deployment.cloud.url,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": "us-east-1",
            "POWERTOOLS_LOG_LEVEL": "ERROR",
            "HOST_RATE": "0",  # what waits for turns has tests of its own
        }
        self.store = DynamoStore(tables, self.table)
        self.queue = SqsQueue(sqs, self.queue_url)
        self.blobs = S3Blobs(deployment.client("s3"), self.environ["BUCKET_NAME"])
        self.bus = EventBridgeBus(deployment.client("events"), self.environ["EVENT_BUS_NAME"])
        self._keys = KeyService(self.store, SystemClock())
        self.key = self.new_key()

    def new_key(self, actor: str = "ann", **values: Any) -> str:
        return asyncio.run(self._keys.create(tenant="acme", actor=actor, **values))

    # the API

    def send(self, event: dict[str, Any]) -> Reply:
        """Invoke the function of the route; its answer has to pass Lambda."""
        name = "fetch_now" if event.get("routeKey") == "POST /v1/fetch" else "api"
        answer = self.deployment.functions[name].lambda_handler(event, context())
        size = len(json.dumps(answer, ensure_ascii=False).encode())  # as Lambda's runtime does since Python 3.12
        headers = {name.lower(): value for name, value in answer.get("headers", {}).items()}
        body = answer["body"] or ""
        raw = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
        return Reply(answer["statusCode"], headers, raw, size)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = "",
        headers: Mapping[str, str] | None = None,
        in_base64: bool = False,
        **query: Any,
    ) -> Reply:
        """A request; `body` is sent as it is when it is text or bytes, else as JSON. `key` None sends none."""
        sent: dict[str, str] = {"content-type": "application/json", **(headers or {})}
        if key is not None:
            sent["authorization"] = f"Bearer {key or self.key}"
        return self.send(make_event(method, path, body, sent, query, in_base64))

    def get(self, path: str, **values: Any) -> Reply:
        return self.request("GET", path, **values)

    def submit(self, *urls: str, **values: Any) -> str:
        """The id of a new job of these URLs."""
        reply = self.request("POST", "/v1/jobs", {"targets": [{"url": url} for url in urls], **values})
        assert reply.status == 202, reply.raw
        job_id: str = reply.json["id"]
        return job_id

    # what happens behind it

    def advancer(self, clock: Clock | None = None) -> Advancer:
        assembly = SqsQueue(self.deployment.client("sqs"), self.assemble_url)
        return Advancer(self.store, self.queue, self.blobs, self.bus, clock or SystemClock(), assembly=assembly)

    def worker(self, fetch: Callable[..., Awaitable[Content]]) -> Worker:
        return Worker(
            store=self.store, queue=self.queue, clock=SystemClock(), advancer=self.advancer(),
            dead_letters=SqsDeadLetters(self.deployment.client("sqs"), self.dead_url),
            runner=FetchRunner(fetch, self.blobs, SystemClock()), lease_seconds=100,
        )  # fmt: skip

    def receive(self, queue_url: str | None = None) -> list[dict[str, Any]]:
        sqs = self.deployment.client("sqs")
        url = queue_url or self.queue_url
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def work(self, answers: Answers | None = None, most: int = 1_000) -> None:
        """Work on up to `most` targets until the queue is empty; a URL without an answer is answered with itself."""
        worker = self.worker(fetch_from(answers or {}))
        sqs = self.deployment.client("sqs")
        while most and (messages := self.receive()):
            batch = [Received(m["MessageId"], m["ReceiptHandle"], m["Body"]) for m in messages[:most]]
            most -= len(batch)
            kept = asyncio.run(worker.run_batch(batch, lambda: 90.0))
            assert kept == []
            for message in messages[: len(batch)]:
                sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])

    def assemble(self, seconds: Sequence[float] = (), most: int = 1_000) -> list[str]:
        """The function of the results files, until its queue is empty or it ran `most` times; the ids of the messages
        that it kept. `seconds` are left when it looks at its time, one after another; then there is enough."""
        left = iter(seconds)
        clock = context()
        clock.get_remaining_time_in_millis = lambda: next(left, 120.0) * 1000
        sqs = self.deployment.client("sqs")
        kept: list[str] = []
        for _ in range(most):
            messages = sqs.receive_message(QueueUrl=self.assemble_url).get("Messages", [])
            if not messages:
                break
            record = read_event("assemble-job")["Records"][0]
            message = messages[0]
            record |= {name: message[key] for name, key in MESSAGE_FIELDS.items()}
            answer = self.deployment.functions["assemble"].lambda_handler({"Records": [record]}, clock)
            failures = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
            kept += failures
            if not failures:
                sqs.delete_message(QueueUrl=self.assemble_url, ReceiptHandle=message["ReceiptHandle"])
        return kept

    def state(self, job_id: str) -> State:
        state = asyncio.run(self.store.get_state(job_id))
        assert state is not None
        return state

    def stored(self) -> tuple[int, int]:
        """How many items there are in the table, and how many messages in the queue."""
        count = self.deployment.client("dynamodb").scan(TableName=self.table, Select="COUNT")["Count"]
        return count, asyncio.run(self.queue.visible())


def fetch_from(answers: Answers) -> Callable[..., Awaitable[Content]]:
    async def fetch(url: str, options: Mapping[str, Any], deadline_s: float, *, gone: Any = None) -> Content:
        answer = answers.get(
            url, Content(url.encode(), "text/plain; charset=utf-8", {"status": 200, "chars": len(url)})
        )
        if isinstance(answer, Exception):
            raise answer
        return answer

    return fetch


def submit_refused(stage: Stage, body: Any, **values: Any) -> Reply:
    """A submission that is refused, and of which nothing is stored."""
    before = stage.stored()
    reply = stage.request("POST", "/v1/jobs", body, **values)
    assert stage.stored() == before
    return reply


NOT_THERE = TargetFailed("http_error", "It answered 404.", "Check the URL.", status=404)


def make_event(
    method: str, path: str, body: Any, headers: Mapping[str, str], query: Mapping[str, Any], in_base64: bool
) -> dict[str, Any]:
    """An event of payload format 2.0, made from the one in events/."""
    event = copy.deepcopy(read_event("api-submit"))
    words = {name: str(value).lower() if value is True else str(value) for name, value in query.items()}
    event |= {
        "routeKey": f"{method} {_route(path)}",
        "rawPath": path,
        "rawQueryString": urlencode(words),
        "headers": {**event["headers"], **headers},
    }
    if "authorization" not in headers:
        del event["headers"]["authorization"]
    if words:
        event["queryStringParameters"] = words
    event["requestContext"]["http"] |= {"method": method, "path": path}
    del event["body"]
    event["isBase64Encoded"] = in_base64
    if body is not None:
        text = body if isinstance(body, str | bytes) else json.dumps(body, ensure_ascii=False)
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        event["body"] = base64.b64encode(data).decode() if in_base64 else data.decode("utf-8", "surrogatepass")
    return event


def _route(path: str) -> str:
    """The path as the template's routes have it, which is how API Gateway names it."""
    match path.split("/")[1:]:
        case ["v1", "jobs", _]:
            return "/v1/jobs/{id}"
        case ["v1", "jobs", _, "targets", _]:
            return "/v1/jobs/{id}/targets/{index}"
        case ["v1", "jobs", _, "targets", _, rest]:
            return f"/v1/jobs/{{id}}/targets/{{index}}/{rest}"
        case ["v1", "jobs", _, rest]:
            return f"/v1/jobs/{{id}}/{rest}"
    return path


def context(seconds: float = 90.0) -> Any:
    """What Lambda passes beside the event."""
    return SimpleNamespace(
        function_name="sift", memory_limit_in_mb=1024, invoked_function_arn="arn:aws:lambda:us-east-1:1:function:sift",
        aws_request_id="request-1", get_remaining_time_in_millis=lambda: int(seconds * 1000),
    )  # fmt: skip
