"""The AWS services of a local stack: moto behind the gate, its resources, and clients for them."""

from __future__ import annotations

import itertools
import os
import threading
from typing import Any

import botocore.config
import botocore.session
from moto.backends import get_backend

from sift_client.local.blueprint import Blueprint
from sift_client.local.dispatch import Dispatcher
from sift_client.local.gate import Gate
from sift_client.local.naming import REGION
from sift_client.local.webserver import LOOPBACK, WebServer

SERVICES = ("dynamodb", "s3", "sqs", "events")
_ACCOUNTS_IN_USE: set[str] = set()
_ACCOUNTS_LOCK = threading.Lock()


class Cloud:
    """moto's services on a free port of `host`, in an account of their own, so that several stacks do not meet."""

    def __init__(self, host: str = LOOPBACK) -> None:
        with _ACCOUNTS_LOCK:
            self.account = next(
                account for number in itertools.count(123456789012) if (account := str(number)) not in _ACCOUNTS_IN_USE
            )
            _ACCOUNTS_IN_USE.add(self.account)
        self.gate = Gate(Dispatcher(), self.account)
        self._server = WebServer(self.gate, host=host)
        self.url = self._server.url
        self._clients: dict[str, Any] = {}
        self._clients_lock = threading.Lock()
        self._server.start()

    def client(self, service: str) -> Any:
        """A boto3-style client of a service; one per service, safe to share between threads."""
        with self._clients_lock:
            if service not in self._clients:
                # Nothing of this machine's AWS settings may lead a call to a real account.
                session = botocore.session.Session(session_vars={"profile": (None, None, None, None)})
                session.set_config_variable("config_file", os.devnull)
                session.set_config_variable("credentials_file", os.devnull)
                self._clients[service] = session.create_client(
                    service, region_name=REGION, endpoint_url=self.url,
                    aws_access_key_id="local", aws_secret_access_key="local",  # noqa: S106 - moto checks none
                    config=botocore.config.Config(
                        proxies={}, max_pool_connections=50, read_timeout=1000, retries={"total_max_attempts": 1},
                    ),
                )  # fmt: skip
            return self._clients[service]

    def provision(self, blueprint: Blueprint) -> None:
        """Makes the tables, queues, buckets and buses of a blueprint."""
        dynamodb, sqs = self.client("dynamodb"), self.client("sqs")
        for table in blueprint.tables.values():
            dynamodb.create_table(**table.request)
            if table.ttl:
                dynamodb.update_time_to_live(
                    TableName=table.name,
                    TimeToLiveSpecification={"AttributeName": table.ttl, "Enabled": True},
                )
            if table.recovery:
                dynamodb.update_continuous_backups(
                    TableName=table.name,
                    PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
                )
        # A dead-letter queue has to be there before the queue that names it.
        for queue in sorted(blueprint.queues.values(), key=lambda queue: "RedrivePolicy" in queue.attributes):
            sqs.create_queue(QueueName=queue.name, Attributes=queue.attributes)
        for bucket in blueprint.buckets.values():
            self.client("s3").create_bucket(Bucket=bucket)
        for bus in blueprint.buses.values():
            if bus != "default":
                self.client("events").create_event_bus(Name=bus)

    def close(self) -> None:
        """Stops serving and forgets everything in the account."""
        for client in self._clients.values():
            client.close()
        self._server.close()
        for service in SERVICES:
            backends: Any = get_backend(service)  # type: ignore[call-overload]
            for backend in backends.pop(self.account, {}).values():
                backend.reset()
        with _ACCOUNTS_LOCK:
            _ACCOUNTS_IN_USE.discard(self.account)
