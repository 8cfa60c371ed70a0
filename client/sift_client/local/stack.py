"""A whole stack from a template on this machine: AWS services, functions, mappings, schedules and the HTTP API."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from sift_client.local.access import make_key
from sift_client.local.buses import Buses
from sift_client.local.calls import Answer, Refusal, answer_json
from sift_client.local.cloud import Cloud
from sift_client.local.deferral import Deferral
from sift_client.local.document import read_document
from sift_client.local.errors import TemplateError
from sift_client.local.front import INTEGRATION_SECONDS, Front
from sift_client.local.function import Concurrency, Function, InvokeRefused, Outcome
from sift_client.local.mapping import Mapping
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint
from sift_client.local.routes import Routes
from sift_client.local.schedules import Schedules
from sift_client.local.state import load_state, save_state, saved_site_port
from sift_client.local.webserver import LOOPBACK

STACK_NAME = "sift-local"
ACCOUNT_CONCURRENCY = 1000  # Lambda quotas: what an account's functions may run at once


class LocalStack:
    """One stack, running from construction until `close`; also a context manager.

    It listens at `host` alone; `port` 0 takes a free one. `site` also starts the sample web site and lets its one
    address through the guard.
    `state` is a file to go on from and to leave behind at `drain`. `parameters` override the template's.
    `make_key` makes the API key, where no saved state has one. For tests: `integration_seconds` is the HTTP API's
    longest wait; schedules and asynchronous retries come round `schedule_speed` and `retry_speed` times faster.
    Raises TemplateError where the template cannot be run; `inert` and `unknown` say what of it has no effect here.
    """

    def __init__(
        self,
        template: str | Path = "template.yaml",
        port: int = 0,
        site: bool = False,
        state: str | Path | None = None,
        parameters: dict[str, str] | None = None,
        log_dir: str | Path | None = None,
        host: str = LOOPBACK,
        *,
        make_key: Callable[[LocalStack], str | None] = make_key,
        integration_seconds: float = INTEGRATION_SECONDS,
        schedule_speed: float = 1.0,
        retry_speed: float = 1.0,
    ) -> None:
        self._state = None if state is None else Path(state)
        self.log_dir = Path(log_dir) if log_dir else Path(tempfile.mkdtemp(prefix="sift-local-"))
        self.log_dir.mkdir(parents=True, exist_ok=True)
        self.site: Any = None
        self._hurry = threading.Event()
        self._drained = False
        self._closers: list[Callable[[], Any]] = []
        try:
            if site:
                parameters = {"GuardAllow": self._start_site(host), **(parameters or {})}
            document = read_document(Path(template).resolve(), parameters)
            self._cloud = Cloud(host)
            self._closers.append(self._cloud.close)
            self._account = self._cloud.account
            self._front = Front(port, self._account, self._invoke, integration_seconds, host)
            self._closers.append(self._front.close)
            self._naming = Naming(document, STACK_NAME, self._account, self._cloud.url, self._front.url)
            self._blueprint = make_blueprint(document, self._naming)
            self.inert, self.unknown = self._blueprint.inert, self._blueprint.unknown
            self._cloud.provision(self._blueprint)
            saved = load_state(self._state, self._cloud, self._blueprint) if self._state else None
            self._make_functions()
            self._deferral = Deferral(retry_speed, self._send_to_target)
            self._schedules = Schedules(self._blueprint.schedules, self._account, self._fire, schedule_speed)
            self._mappings = self._make_mappings()
            self._connect()
            self.key = saved or make_key(self)
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of the HTTP API."""
        return self._front.url

    def client(self, service: str) -> Any:
        """A client of this stack's `dynamodb`, `s3`, `sqs`, `events` or `lambda`."""
        return self._cloud.client(service)

    def physical(self, logical_id: str) -> str:
        """What `Ref` gives for a resource: a table's, bucket's, bus's or function's name, a queue's URL."""
        return self._naming.ref(logical_id)

    def has(self, logical_id: str) -> bool:
        """Whether the stack runs a function, table, queue, bucket or bus of that logical id."""
        made = self._blueprint
        return any(logical_id in part for part in (made.functions, made.tables, made.queues, made.buckets, made.buses))

    def invoke(self, logical_id: str, event: Any) -> Outcome:
        """Runs a function with an event and waits; raises InvokeRefused when Lambda would not start it."""
        return self._invoke(logical_id, json.dumps(event))

    def variables(self) -> dict[str, dict[str, str]]:
        """Each function's variables by its logical id: the template's, worked out, and the address of the services."""
        address = {"AWS_ENDPOINT_URL": self._cloud.url}
        return {name: {**spec.environment, **address} for name, spec in self._blueprint.functions.items()}

    def environments(self) -> dict[str, list[int]]:
        """Process ids of the living execution environments by logical id of their function, busy ones first."""
        return {logical: function.pids() for logical, function in self._functions.items()}

    def restart_pollers(self) -> None:
        """Stops the queue mappings, whose running batches go on, and starts new ones."""
        for mapping in self._mappings:
            mapping.stop()
        self._mappings = self._make_mappings()
        for mapping in self._mappings:
            mapping.start()

    def hurry(self) -> None:
        """Makes a drain that is under way end at once."""
        self._hurry.set()

    def drain(self) -> None:
        """Starts nothing new, lets what runs end within its timeout, and saves the state; the data stays readable.

        Asynchronous events that still wait for a retry are dropped.
        """
        if self._drained:
            return
        self._drained = True
        self._front.close()
        self._schedules.stop()
        for mapping in self._mappings:
            mapping.stop()
        self._deferral.stop()
        for function in self._functions.values():
            function.wait_idle(function.spec.timeout + 11.0, self._hurry.is_set)
        for function in self._functions.values():
            function.close()
        for mapping in self._mappings:
            mapping.wait_idle(5.0)
        self._front.wait_idle(1.0)
        if self._state is not None:
            port = None if self.site is None else urlsplit(self.site.url).port
            save_state(self._state, self._cloud, self._blueprint, self.key, port)

    def close(self) -> None:
        """Ends everything at once; call `drain` before it to keep the work."""
        while self._closers:
            self._closers.pop()()

    def __enter__(self) -> LocalStack:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start_site(self, host: str) -> str:
        from sift_client.errors import SiftClientError
        from sift_client.site import start_site

        port = saved_site_port(self._state) if self._state else 0
        try:
            site = start_site(port, host=host)
        except SiftClientError:
            if not port:
                raise
            site = start_site(
                host=host
            )  # another program has taken it since: what is left of the old site's targets fails
        self.site = site
        self._closers.append(site.close)
        return site.url.removeprefix("http://").rstrip("/")

    def _make_functions(self) -> None:
        shared = sum(spec.reserved or 0 for spec in self._blueprint.functions.values())
        account = Concurrency(ACCOUNT_CONCURRENCY - shared)
        self._functions = {
            logical: Function(spec, self._cloud.url, self.log_dir / f"{logical}.log", account)
            for logical, spec in self._blueprint.functions.items()
        }

    def _make_mappings(self) -> list[Mapping]:
        sqs = self.client("sqs")
        return [
            Mapping(spec, self._functions[spec.function], sqs, self._naming.queue_url(spec.queue_arn.split(":")[-1]))
            for spec in self._blueprint.mappings
        ]

    def _connect(self) -> None:
        buses = Buses(self._blueprint.rules, self._account, self._send_to_target)
        for rule in self._blueprint.rules:
            for arn, _ in rule.targets:
                self._check_target(rule.name, arn)
        for function in self._functions.values():
            if function.spec.on_failure is not None:
                self._check_target(function.spec.logical_id, function.spec.on_failure)
        gate = self._cloud.gate
        gate.on_events = buses.deliver
        gate.on_queue_change = self._wake_mappings
        gate.on_invoke = self._serve_invoke

    def _wake_mappings(self) -> None:
        for mapping in self._mappings:
            mapping.wake()

    def _start(self) -> None:
        self._closers.append(self._stop)
        self._deferral.start()
        self._schedules.start()
        for mapping in self._mappings:
            mapping.start()
        self._front.start(Routes(self._blueprint.routes))

    def _stop(self) -> None:
        self._schedules.stop()
        for function in self._functions.values():
            function.close()
        for mapping in self._mappings:
            mapping.stop()
        for mapping in self._mappings:
            mapping.wait_idle(5.0)
        self._deferral.stop()

    def _invoke(self, logical_id: str, event: str) -> Outcome:
        return self._functions[logical_id].invoke(event)

    def _fire(self, logical_id: str, event: str) -> None:
        self._deferral.submit(self._functions[logical_id], event)

    def _find_function(self, name: str) -> Function | None:
        return next((f for f in self._functions.values() if name in (f.spec.name, f.spec.arn)), None)

    def _check_target(self, rule: str, arn: str) -> None:
        queues = [f"arn:aws:sqs:us-east-1:{self._account}:{queue.name}" for queue in self._blueprint.queues.values()]
        if self._find_function(arn) is None and arn not in queues:
            raise TemplateError(f"{rule}: target {arn} is neither a function nor a queue of the stack")

    def _send_to_target(self, arn: str, event: str) -> None:
        function = self._find_function(arn)
        if function is not None:
            self._deferral.submit(function, event)
        else:
            self.client("sqs").send_message(QueueUrl=self._naming.queue_url(arn.split(":")[-1]), MessageBody=event)

    def _serve_invoke(self, name: str, kind: str, event: str) -> Answer:
        """Lambda's Invoke, for functions that call functions and for `client("lambda")`."""
        function = self._find_function(name)
        if function is None:
            raise Refusal("ResourceNotFoundException", f"Function not found: {name}", status=404)
        try:
            if kind == "Event":
                self._deferral.submit(function, event)
                return Answer("202 Accepted", [("Content-Length", "0")], b"")
            outcome = function.invoke(event)
        except InvokeRefused as refused:
            raise Refusal(refused.code, str(refused), status=refused.status) from refused
        headers = [("X-Amz-Executed-Version", "$LATEST")]
        if outcome.failed:
            headers.append(("X-Amz-Function-Error", "Unhandled"))
        return answer_json(outcome.value, headers=headers)
