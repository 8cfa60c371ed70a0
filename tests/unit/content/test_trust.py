"""Certificates that are read once, for whoever needs them first."""

from __future__ import annotations

import asyncio
import ssl
import threading

import pytest

from sift.content.trust import Trust


def test_they_are_read_once_and_outlive_who_asked_first() -> None:
    may_go = threading.Event()
    made: list[ssl.SSLContext] = []

    def make() -> ssl.SSLContext:
        assert may_go.wait(120)
        made.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return made[-1]

    async def ask() -> list[ssl.SSLContext]:
        trust = Trust(make)
        first = asyncio.create_task(trust.context())
        others = [asyncio.create_task(trust.context()) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        may_go.set()
        return [*await asyncio.gather(*others), await trust.context()]

    assert asyncio.run(ask()) == [made[0]] * 4
    assert len(made) == 1


def test_a_file_that_is_not_there_is_told_each_time() -> None:
    def make() -> ssl.SSLContext:
        return ssl.create_default_context(cafile="/nowhere/ca.pem")

    async def ask() -> None:
        trust = Trust(make)
        for _ in range(2):
            with pytest.raises(FileNotFoundError):
                await trust.context()

    asyncio.run(ask())
