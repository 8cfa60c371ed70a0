"""What stands between the functions and moto: one call at a time per service, and the limits that moto lets pass."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from sift_client.local.calls import Answer, Environ, Refusal, answer_refusal, call, read_body
from sift_client.local.sizes import measure_event, measure_message
from sift_client.local.tablegate import TableGate
from sift_client.local.uploads import refuse_lost_upload

MESSAGE_BYTES = 1024 * 1024  # SQS quotas: a message, and all messages of a batch together
EVENTS_BYTES = 1024 * 1024  # EventBridge quotas: all entries of one PutEvents together
RECEIVE_STEP = 0.1  # seconds between two looks of a long poll

Invoke = Callable[[str, str, str], Answer]


class Gate:
    """A WSGI application around moto's.

    moto's backends are plain dictionaries: two threads at once may both win a condition or receive the same message.
    So calls to one service queue up here, which is what makes each atomic. Long polls wait outside the lock.
    """

    def __init__(self, application: Any, account: str) -> None:
        self._application = application
        self._account = account
        self._locks = {name: threading.Lock() for name in ("dynamodb", "sqs", "s3", "events")}
        self._tables = TableGate(application, account)
        self.on_queue_change: Callable[[], None] = lambda: None
        self.on_events: Callable[[list[dict[str, Any]], list[dict[str, Any]]], None] = lambda entries, results: None
        self.on_invoke: Invoke | None = None

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """Serves one AWS call."""
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = self._account
        return self._serve(environ).send(start_response)

    def _serve(self, environ: Environ) -> Answer:
        service, _, operation = environ.get("HTTP_X_AMZ_TARGET", "").partition(".")
        try:
            if service.startswith("DynamoDB_"):
                body = read_body(environ)
                with self._locks["dynamodb"]:
                    return self._tables.serve(environ, operation, body)
            if service == "AmazonSQS":
                return self._serve_queue(environ, operation, read_body(environ))
            if service == "AWSEvents":
                return self._serve_events(environ, operation, read_body(environ))
            if environ["PATH_INFO"].startswith("/2015-03-31/functions/") and self.on_invoke is not None:
                name = environ["PATH_INFO"].split("/")[3]
                kind = environ.get("HTTP_X_AMZ_INVOCATION_TYPE", "RequestResponse")
                return self.on_invoke(name, kind, read_body(environ).decode("utf-8", "replace"))
        except Refusal as refusal:
            return answer_refusal(refusal)
        with self._locks["s3"]:
            lost = refuse_lost_upload(environ, self._account)
            return lost or call(self._application, environ)

    def _serve_queue(self, environ: Environ, operation: str, body: bytes) -> Answer:
        request = json.loads(body or b"{}")
        if operation == "SendMessage":
            size = measure_message(request)
            if size > MESSAGE_BYTES:
                reason = f"Message must be shorter than {MESSAGE_BYTES} bytes."
                message = f"One or more parameters are invalid. Reason: {reason}"
                raise Refusal("InvalidParameterValue", message, legacy="InvalidParameterValue")
        elif operation == "SendMessageBatch":
            size = sum(map(measure_message, request.get("Entries", [])))
            if size > MESSAGE_BYTES:
                raise Refusal(
                    "BatchRequestTooLong",
                    f"Batch requests cannot be longer than {MESSAGE_BYTES} bytes. You have sent {size} bytes.",
                    legacy="AWS.SimpleQueueService.BatchRequestTooLong",
                )
        elif operation == "ReceiveMessage":
            return self._receive(environ, request)
        with self._locks["sqs"]:
            answer = call(self._application, environ)
        if operation in (
            "SendMessage",
            "SendMessageBatch",
            "ChangeMessageVisibility",
            "ChangeMessageVisibilityBatch",
        ):
            self.on_queue_change()
        return answer

    def _receive(self, environ: Environ, request: dict[str, Any]) -> Answer:
        wait = request.get("WaitTimeSeconds", 0)
        if not 0 <= wait <= 20:
            reason = "Value for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."
            raise Refusal("InvalidParameterValue", f"{wait} {reason}", legacy="InvalidParameterValue")
        body = json.dumps({**request, "WaitTimeSeconds": 0}).encode()
        end = time.monotonic() + wait
        while True:
            with self._locks["sqs"]:
                answer = call(self._application, environ, body)
            if time.monotonic() >= end or not answer.ok or json.loads(answer.body or b"{}").get("Messages"):
                return answer
            time.sleep(RECEIVE_STEP)

    def _serve_events(self, environ: Environ, operation: str, body: bytes) -> Answer:
        entries = json.loads(body or b"{}").get("Entries", []) if operation == "PutEvents" else []
        size = sum(map(measure_event, entries))
        if size > EVENTS_BYTES:
            raise Refusal(
                "ValidationException",
                f"Total size of the entries in the request is over the limit: {size} bytes of {EVENTS_BYTES}.",
            )
        with self._locks["events"]:
            answer = call(self._application, environ)
        if entries and answer.ok:
            self.on_events(entries, json.loads(answer.body)["Entries"])
        return answer
