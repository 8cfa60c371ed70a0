"""What an execution environment keeps between its invocations: one event loop, and one client of each service."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import boto3
from botocore.config import Config

T = TypeVar("T")

#: Ten targets at once, each with at most one call under way, and some room.
THREADS = 16


@functools.cache
def runner() -> asyncio.Runner:
    """Of the event loop, and the threads that wait for AWS."""
    made = asyncio.Runner()
    made.get_loop().set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="aws"))
    return made


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on the loop that this execution environment keeps between invocations."""
    return runner().run(work, context=contextvars.copy_context())  # what the log is about goes along


@functools.cache
def client(service: str) -> Any:
    """One client per service; boto3 is half of a cold start, so each is made when first used."""
    options = Config(
        connect_timeout=2,
        read_timeout=10,
        max_pool_connections=THREADS,
        retries={"mode": "standard", "total_max_attempts": 3},
        signature_version="s3v4" if service == "s3" else None,
    )
    make: Any = boto3.client  # its stubs know each service by name only
    return make(service, config=options)


class LazyClient:
    """Stands for a client until its first use."""

    def __init__(self, service: str) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        return getattr(client(self._service), name)
