"""Each role allows what its function calls, on what it calls it, and nothing more."""

from __future__ import annotations

import asyncio
import random
import re
import string
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sift import aws
from sift.assembly import AssemblyMessage
from sift.clock import SystemClock
from sift.content.poster import Posted
from sift.errors import TargetBusy, TargetFailed
from sift.jobs import SEGMENT
from sift.loglines import Failed
from sift.services.sweep import QUIET_MS
from sift.services.webhook_secrets import WebhookSecrets
from sift.store import keys, requests
from sift.targets import Content, FetchOptions
from tests.integration.api.stage import Stage, read_event
from tests.integration.api.test_functions import (
    fetch_function,
    fire_event,
    later,
    notify_function,
    sweep_function,
)
from tests.integration.api.test_inference_function import inference_function
from tests.integration.api.test_inference_function import submit as submit_requests
from tests.integration.upstream.stub import StubGateway
from tests.template.document import functions, load, resources, target

Permission = tuple[str, str]

#: What the code calls: the permission it needs, and the argument that says on what. A transaction needs those of its
#: parts (DynamoDB developer guide, IAM and transactions).
CALLS = {
    "get_item": "dynamodb:GetItem", "batch_get_item": "dynamodb:BatchGetItem", "query": "dynamodb:Query",
    "put_item": "dynamodb:PutItem", "update_item": "dynamodb:UpdateItem", "delete_item": "dynamodb:DeleteItem",
    "batch_write_item": "dynamodb:BatchWriteItem", "get_object": "s3:GetObject", "put_object": "s3:PutObject",
    "list_objects_v2": "s3:ListBucket", "delete_objects": "s3:DeleteObject", "send_message": "sqs:SendMessage",
    "send_message_batch": "sqs:SendMessage", "change_message_visibility": "sqs:ChangeMessageVisibility",
    "change_message_visibility_batch": "sqs:ChangeMessageVisibility",
    "create_multipart_upload": "s3:PutObject", "upload_part": "s3:PutObject",
    "complete_multipart_upload": "s3:PutObject", "abort_multipart_upload": "s3:AbortMultipartUpload",
    "head_object": "s3:GetObject",
    "get_queue_attributes": "sqs:GetQueueAttributes", "put_events": "events:PutEvents",
}  # fmt: skip

#: What is allowed and not called by the code, and why.
NOT_CALLED = {
    ("FetchFunction", ("sqs:ReceiveMessage", "FetchQueue")): "the mapping polls with this role",
    ("FetchFunction", ("sqs:DeleteMessage", "FetchQueue")): "the mapping deletes with this role",
    ("FetchFunction", ("sqs:GetQueueAttributes", "FetchQueue")): "the mapping asks with this role",
    **{
        (name, (action, "GatewaySecret")): "only for a gateway that wants a token"
        for name in ("FetchFunction", "FetchNowFunction", "InferenceFunction")
        for action in ("secretsmanager:GetSecretValue", "ssm:GetParameter")
    },
    ("InferenceFunction", ("sqs:ReceiveMessage", "InferenceQueue")): "the mapping polls with this role",
    ("InferenceFunction", ("sqs:DeleteMessage", "InferenceQueue")): "the mapping deletes with this role",
    ("InferenceFunction", ("sqs:GetQueueAttributes", "InferenceQueue")): "the mapping asks with this role",
    ("InferenceFunction", ("s3:ListBucket", "ContentBucket")): "else a missing object reads as forbidden",
    ("FetchNowFunction", ("s3:GetObject", "ContentBucket")): "a presigned link has the rights of its maker",
    ("NotifyFunction", ("sqs:ReceiveMessage", "NotifyQueue")): "the mapping polls with this role",
    ("NotifyFunction", ("sqs:DeleteMessage", "NotifyQueue")): "the mapping deletes with this role",
    ("NotifyFunction", ("sqs:GetQueueAttributes", "NotifyQueue")): "the mapping asks with this role",
    ("ScheduleFunction", ("sqs:SendMessage", "ScheduleDeadLetterQueue")): "Lambda sends what failed with this role",
    ("ApiFunction", ("s3:ListBucket", "ContentBucket")): "else a missing object reads as forbidden",
    ("FetchFunction", ("s3:ListBucket", "ContentBucket")): "else a missing object reads as forbidden",
    ("AssembleFunction", ("sqs:ReceiveMessage", "AssembleQueue")): "the mapping polls with this role",
    ("AssembleFunction", ("sqs:DeleteMessage", "AssembleQueue")): "the mapping deletes with this role",
    ("AssembleFunction", ("sqs:GetQueueAttributes", "AssembleQueue")): "the mapping asks with this role",
}


def allowed(name: str) -> set[Permission]:
    """What the function's role allows: actions, and the resources by their logical id. Logs are the runtime's."""
    template = load()
    role = resources(template, "AWS::IAM::Role")[target(functions(template)[name]["Role"])]["Properties"]
    found: set[Permission] = set()
    for policy in role["Policies"]:
        for entry in policy["PolicyDocument"]["Statement"]:
            statement = entry["Fn::If"][1] if "Fn::If" in entry else entry
            actions = statement["Action"]
            if statement["Resource"] == "*":
                assert entry["Fn::If"][0] == "HasInferenceSubnets", "Lambda's own, and denied to the code"
                continue
            for action in [actions] if isinstance(actions, str) else actions:
                if not action.startswith("logs:"):
                    found.add((action, target(statement["Resource"])))
    return found


def leading_keys(name: str) -> list[str]:
    """The patterns that the partition keys of a function's calls have to match; none: any will do."""
    template = load()
    role = resources(template, "AWS::IAM::Role")[target(functions(template)[name]["Role"])]["Properties"]
    found: list[str] = []
    for policy in role["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            if "Condition" in statement:
                ((operator, values),) = statement["Condition"].items()
                assert operator == "ForAllValues:StringLike"
                assert target(statement["Resource"]) == "JobsTable"
                ((variable, patterns),) = values.items()
                assert variable == "dynamodb:LeadingKeys"
                found += patterns
    return found


def matches(key: str, patterns: list[str]) -> bool:
    """As StringLike of IAM: `*` and `?` alone mean something, and case counts."""
    likes = [re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".") for pattern in patterns]
    return any(re.fullmatch(like, key, re.DOTALL) for like in likes)


#: So many targets are written ahead of the job, where a commit takes one segment at the most.
MANY = SEGMENT + 1


class Recorder:
    """Notes the permissions that a function's calls need while it is the one that runs."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.needed: dict[str, set[Permission]] = {}
        self.leading: dict[str, set[str]] = {}
        self._running: str | None = None
        environ = stage.environ
        self._resources = {
            environ["TABLE_NAME"]: "JobsTable",
            environ["BUCKET_NAME"]: "ContentBucket",
            environ["FETCH_QUEUE_URL"]: "FetchQueue",
            environ["ASSEMBLE_QUEUE_URL"]: "AssembleQueue",
            environ["FETCH_DEAD_LETTER_QUEUE_URL"]: "FetchDeadLetterQueue",
            environ["INFERENCE_QUEUE_URL"]: "InferenceQueue",
            environ["INFERENCE_DEAD_LETTER_QUEUE_URL"]: "InferenceDeadLetterQueue",
            environ["NOTIFY_QUEUE_URL"]: "NotifyQueue",
            environ["NOTIFY_DEAD_LETTER_QUEUE_URL"]: "NotifyDeadLetterQueue",
            environ["EVENT_BUS_NAME"]: "EventBus",
        }
        call = aws.call

        async def recorded(operation: Callable[..., Any], **request: Any) -> Any:
            if self._running is not None:
                self.needed.setdefault(self._running, set()).update(self._permissions(operation.__name__, request))
            return await call(operation, **request)

        monkeypatch.setattr(aws, "call", recorded)

    @contextmanager
    def running(self, function: str) -> Iterator[None]:
        self._running = function
        try:
            yield
        finally:
            self._running = None

    def _permissions(self, operation: str, request: dict[str, Any]) -> Iterator[Permission]:
        if operation == "transact_write_items":
            for item in request["TransactItems"]:
                ((action, part),) = item.items()
                yield f"dynamodb:{action}Item", self._resources[part["TableName"]]
            return
        names = [request[name] for name in ("TableName", "Bucket", "QueueUrl") if name in request]
        names += list(request.get("RequestItems", {}))
        names += [entry["EventBusName"] for entry in request.get("Entries", ()) if "EventBusName" in entry]
        assert names, (operation, request)
        now = self._running == "FetchNowFunction"
        for key in [request.get("Key"), request.get("Prefix")]:
            if isinstance(key, str):
                assert key.startswith("answers/" if now else "jobs/"), "the policies end at this prefix"
            elif key and self._running:
                self.leading.setdefault(self._running, set()).add(key["pk"]["S"])
        for name in names:
            yield CALLS[operation], self._resources[name]


@pytest.fixture
def recorder(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(stage, monkeypatch)


def live(stage: Stage, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A course of events in which every function does all that it can do."""
    noise = random.Random(3)
    letters = string.ascii_letters + string.digits
    good, bad, busy, vast = (f"https://example.com/{word}" for word in ("good", "bad", "busy", "vast"))
    long = [f"https://example.com/{''.join(noise.choices(letters, k=5_000))}" for _ in range(100)]
    answers: dict[str, Content | Exception] = {
        good: Content(noise.randbytes(60_000), "application/octet-stream"),
        bad: TargetFailed("http_error", "It answered 404.", "Check the URL."),
        busy: TargetBusy("It answered 429."),
        vast: Content(bytes(5_000_000), "text/plain"),
    }

    class Pipeline:
        def __init__(self, settings: Any, **rest: Any) -> None:
            pass

        async def run(self, url: str, options: FetchOptions, deadline_s: float, *, gone: Any = None) -> Content:
            answer = answers.get(url, Content(b"x", "text/plain"))
            if isinstance(answer, Exception):
                raise answer
            return answer

    class Poster:
        def __init__(self, *parts: Any) -> None:
            pass

        async def post(self, url: str, headers: Any, body: bytes, deadline_s: float) -> Posted:
            return Posted(500)

    monkeypatch.setattr("sift.content.pipeline.Pipeline", Pipeline)
    monkeypatch.setattr("sift.content.poster.GuardedPoster", Poster)
    monkeypatch.setattr("sift.services.submit.COMMIT_SEGMENTS", 1)
    stage.key = stage.new_key("large", limits={"targets_per_job": MANY, "jobs_per_caller": 9})
    for actor in ("large", "ann"):
        asyncio.run(WebhookSecrets(stage.store, SystemClock()).renew("acme", actor))
    hook = {"url": "https://example.com/", "events": ["target.done", "target.failed", "job.ended"]}

    def ask(method: str, path: str, status: int, body: Any = None) -> Any:
        with recorder.running("ApiFunction"):
            reply = stage.request(method, path, body)
        assert reply.status == status, reply.raw
        return reply.json if reply.raw else None

    def submit(*urls: str, **more: Any) -> str:
        job_id: str = ask("POST", "/v1/jobs", 202, {"targets": [{"url": url} for url in urls], **more})["id"]
        return job_id

    monkeypatch.setenv("HOST_RATE", "2")
    with recorder.running("FetchNowFunction"):
        reply = stage.request("POST", "/v1/fetch", {"url": vast})
    monkeypatch.setenv("HOST_RATE", "0")
    assert reply.status == 200, reply.raw

    def work() -> None:
        with recorder.running("FetchFunction"):
            fetch_function(stage)

    def sweep() -> None:
        with recorder.running("SweepFunction"):
            sweep_function(stage)

    mixed = submit(good, busy, webhook=hook)
    failed = submit(bad, webhook=hook)
    cut = submit(*long, window=2)
    stage.deployment.client("sqs").send_message(QueueUrl=stage.queue_url, MessageBody="not a target message")
    work()
    ask("GET", f"/v1/jobs/{mixed}/targets/0", 200)
    assert stage.state(failed).status == "failed"
    assert len(stage.state(cut).flight) == 2, "the window is topped up from the bucket"
    ask("GET", f"/v1/jobs/{failed}/results", 202)
    large = submit(*(f"https://example.com/{number}" for number in range(MANY)))
    for job_id in (mixed, large):
        ask("POST", f"/v1/jobs/{job_id}/cancel", 200)
    ask("GET", "/v1/jobs", 200)
    ask("DELETE", f"/v1/jobs/{mixed}", 204)
    infer(stage, recorder)
    for url in (stage.queue_url, stage.inference_url):
        stage.deployment.client("sqs").purge_queue(QueueUrl=url)
    due = requests.add_id(keys.outbox(0), failed)  # as if its announcement had failed
    stage.deployment.client("dynamodb").update_item(TableName=stage.table, **due)
    later(monkeypatch, QUIET_MS)
    sweep()
    ask("POST", f"/v1/jobs/{cut}/cancel", 200)
    stage.deployment.client("sqs").send_message(QueueUrl=stage.notify_url, MessageBody="not a notice")
    with recorder.running("NotifyFunction"):
        notify_function(stage)
    fire(stage, recorder, monkeypatch, long)
    caller = stage.key
    assemble_all(stage, recorder)
    stage.key = caller
    ask("GET", f"/v1/jobs/{failed}/results", 303)


def assemble_all(stage: Stage, recorder: Recorder) -> None:
    """Results files with all that may happen to them: parts, no time left, a wait for a lease, an upload that is lost,
    a job that is deleted meanwhile."""
    noise = random.Random(5)
    bucket = {"Bucket": stage.environ["BUCKET_NAME"]}
    s3 = stage.deployment.client("s3")

    def assemble(kept: int = 0, **values: Any) -> None:
        with recorder.running("AssembleFunction"):
            assert len(stage.assemble(**values)) == kept

    assemble()
    urls = [f"https://example.com/vast/{number}" for number in range(10)]
    vast: dict[str, Content | Exception] = {url: Content(noise.randbytes(700_000), "image/png") for url in urls}
    in_parts = stage.submit(*urls, window=10)
    stage.work(vast)
    assemble(seconds=[120.0, 10.0], most=1)
    (upload,) = s3.list_multipart_uploads(**bucket)["Uploads"]
    s3.abort_multipart_upload(**bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    assemble()
    assert stage.get(f"/v1/jobs/{in_parts}/results").status == 303
    stage.request("DELETE", f"/v1/jobs/{in_parts}")
    message = AssemblyMessage(in_parts).encode()  # as if it came once more
    stage.deployment.client("sqs").send_message(QueueUrl=stage.assemble_url, MessageBody=message)
    assemble()
    again = stage.request("POST", "/v1/jobs", {"targets": [{"url": url} for url in urls], "fresh": True}).json["id"]
    stage.work(vast)
    assemble(seconds=[120.0, 10.0], most=1)
    stage.request("DELETE", f"/v1/jobs/{again}")
    assemble()
    assert "Uploads" not in s3.list_multipart_uploads(**bucket)
    swept = stage.request("POST", "/v1/jobs", {"targets": [{"url": url} for url in urls], "fresh": True}).json["id"]
    stage.work(vast)
    assemble(seconds=[120.0, 10.0], most=1)
    stage.request("DELETE", f"/v1/jobs/{swept}")
    with recorder.running("SweepFunction"):
        sweep_function(stage)
    assert "Uploads" not in s3.list_multipart_uploads(**bucket)
    stage.key = stage.new_key("other", limits={"targets_per_job": MANY, "jobs_per_caller": 9})
    cut = stage.submit(*(f"https://example.com/{noise.randbytes(2_500).hex()}" for _ in range(100)), window=1)
    stage.request("POST", f"/v1/jobs/{cut}/cancel")  # its targets are in the bucket
    assemble()
    running = stage.submit("https://example.com/running")
    now = SystemClock().now_ms()
    asyncio.run(stage.store.claim(running, 0, now + 60_000, now))
    stage.request("POST", f"/v1/jobs/{running}/cancel")
    assemble(kept=1)


def fire(stage: Stage, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, long: list[str]) -> None:
    """Events of every size, the last of them over the cap of its caller."""
    limits = {"targets_per_job": MANY, "jobs_per_caller": 3}
    key = stage.new_key("timer", events=True, limits=limits, scopes=("fetch", "inference"))
    monkeypatch.setenv("EVENT_KEY_ID", key.split("_")[1])
    many = [f"https://example.com/{number}" for number in range(MANY)]
    with recorder.running("ScheduleFunction"):
        batches: list[dict[str, Any]] = [{"targets": [{"url": url} for url in urls]} for urls in (long, many)]
        batches.append({"requests": [{"path": "/v1/chat/completions", "model": "small", "body": {"n": 1}}]})
        for number, batch in enumerate(batches):
            fire_event(stage, read_event("schedule-batch") | {"id": str(number), "detail": batch})
        with pytest.raises(Failed, match="caller_busy"):
            fire_event(stage, read_event("schedule-batch"))
    for job in stage.get("/v1/jobs", key=key).json["jobs"]:  # else all of its targets would be worked on below
        assert stage.request("POST", f"/v1/jobs/{job['id']}/cancel", key=key).status == 200


def infer(stage: Stage, recorder: Recorder) -> None:
    """Requests that are answered at length, that have to wait, and that are sent out from the bucket."""
    with recorder.running("ApiFunction"):
        long = ["x" * 40_000] * 3  # bodies of this size are kept in the bucket
        hook = {"url": "https://example.com/", "events": ["job.ended"], "headers": {}, "metadata": {}}
        cut = submit_requests({"size": 1_000_000}, *({"body": text} for text in long), window=2, webhook=hook)
        submit_requests({"status": 429})
        submit_requests({"status": 404})  # it fails, and no longer stands for the same work
    stage.deployment.client("sqs").send_message(QueueUrl=stage.inference_url, MessageBody="not a target message")
    with recorder.running("InferenceFunction"):
        inference_function(stage)
        while stage.state(cut).status != "done":
            inference_function(stage)
    with recorder.running("ApiFunction"):
        submit_requests({"body": "its message will be lost"})


def test_every_role_allows_what_its_function_needs_and_no_more(
    stage: Stage, gateway: StubGateway, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(stage, recorder, monkeypatch)
    for name in functions(load()):
        needed, granted = recorder.needed[name], allowed(name)
        assert needed - granted == set(), f"{name} would be refused"
        excused = {permission for function, permission in NOT_CALLED if function == name}
        assert granted - needed - excused == set(), f"{name} never needs it"
        assert excused <= granted
    bounds = {name: found for name in functions(load()) if (found := leading_keys(name))}
    ((bounded, patterns),) = bounds.items()
    assert bounded == "FetchNowFunction"
    asked = recorder.leading[bounded]
    assert asked == {keys.api_key(stage.key.split("_")[1])[0], keys.pace("example.com")[0]}
    assert all(matches(key, patterns) for key in asked), "it would be refused"
    others = {key for name, found in recorder.leading.items() if name != bounded for key in found} - asked
    assert any(key.startswith("JOB#") for key in others)
    granted_too = (keys.api_key("")[0], keys.pace("")[0])
    others = {key for key in others if not key.startswith(granted_too)} | {keys.listed_key("")[0]}
    assert not any(matches(key, patterns) for key in others), "it may read more than keys"
