"""The inside of one Lambda execution environment: imports a handler once and runs one event after another.

Started as a script, never imported by the stack: `python -P -s runtime.py <socket fd>`, with the search path as JSON
in the first message. It knows nothing but the standard library, so that a function sees only what Lambda would show.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import socket
import struct
import sys
import threading
import time
import traceback
from typing import Any, NoReturn


class LambdaContext:
    """What Lambda hands to a handler beside the event."""

    def __init__(self, request_id: str, arn: str, deadline: float) -> None:
        self.aws_request_id = request_id
        self.invoked_function_arn = arn
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.identity = None
        self.client_context = None
        self.tenant_id = None
        self._deadline = deadline

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function's timeout."""
        return max(0, int((self._deadline - time.time()) * 1000))


class Channel:
    """Frames of JSON over a socket: four bytes of length, then the text."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, message: dict[str, Any]) -> None:
        """Sends one message."""
        data = json.dumps(message).encode()
        self._connection.sendall(struct.pack(">I", len(data)) + data)

    def receive(self, deadline: float | None = None) -> dict[str, Any] | None:
        """The next message, or None at the end or when time.monotonic() has passed `deadline`."""
        header = self._read(4, deadline)
        data = self._read(struct.unpack(">I", header)[0], deadline) if header else b""
        return json.loads(data) if data else None

    def _read(self, size: int, deadline: float | None) -> bytes:
        parts = []
        while size:
            try:
                if deadline is not None:
                    self._connection.settimeout(max(0.001, deadline - time.monotonic()))
                part = self._connection.recv(min(size, 1 << 20))
            except OSError:
                return b""
            if not part:
                return b""
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _describe(error: BaseException) -> dict[str, Any]:
    """An error in the shape that Lambda answers."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__]
    return {
        "errorMessage": str(error),
        "errorType": type(error).__name__,
        "requestId": "",
        "stackTrace": traceback.format_list(own),
    }


def _load_handler(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module.replace("/", ".")), attribute)


def _listen(channel: Channel, inbox: queue.SimpleQueue[dict[str, Any]]) -> NoReturn:
    while True:
        message = channel.receive()
        if message is None:
            # The stack is gone, however it ended: so is this environment, even in the middle of an event.
            os._exit(0)
        inbox.put(message)


def _run(handler: Any, message: dict[str, Any]) -> dict[str, Any]:
    context = LambdaContext(message["request_id"], message["arn"], message["deadline"])
    try:
        answer = handler(json.loads(message["event"]), context)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is its answer
        traceback.print_exc()
        return {"error": {**_describe(error), "requestId": context.aws_request_id}}
    try:
        return {"payload": json.dumps(answer, ensure_ascii=False)}
    except (TypeError, ValueError) as error:
        return {
            "error": {
                "errorMessage": f"Unable to marshal response: {error}",
                "errorType": "Runtime.MarshalError",
                "requestId": context.aws_request_id,
                "stackTrace": [],
            }
        }


def main() -> None:
    """Serves events until the stack closes the socket."""
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    os.set_inheritable(int(sys.argv[1]), False)
    inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(channel, inbox), daemon=True).start()
    sys.path[:0] = inbox.get()["path"]
    time.tzset()
    try:
        handler = _load_handler(os.environ["_HANDLER"])
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an import may fail in any way
        traceback.print_exc()
        described = _describe(error)
        if isinstance(error, ImportError):
            described["errorType"] = "Runtime.ImportModuleError"
        channel.send({"failed": described})
        return
    channel.send({"ready": True})
    while True:
        message = inbox.get()
        answer = _run(handler, message)
        sys.stdout.flush()
        channel.send(answer)


if __name__ == "__main__":
    main()
