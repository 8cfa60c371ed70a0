"""Names whose servers hang must not keep the names of others from being looked up."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from sift.content.guard import Guard, SystemResolver

#: A batch is ten; the look-ups that a batch before gave up on still hold their threads.
SLOW = 19


def test_a_name_is_looked_up_beside_slow_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    def look_up(host: str, port: int, **options: Any) -> Any:
        if host.startswith("slow"):
            let_go.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def admit() -> list[str]:
        guard = Guard(SystemResolver())
        slow = [asyncio.create_task(guard.admit(f"https://slow{number}.example.com/")) for number in range(SLOW)]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(60):
                _, addresses = await guard.admit("https://quick.example.com/")
        finally:
            let_go.set()
            await asyncio.gather(*slow)
        return [str(address) for address in addresses]

    assert asyncio.run(admit()) == ["93.184.216.34"]
