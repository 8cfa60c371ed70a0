"""A model gateway whose answers are set by the test; it keeps what it was asked."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from sift.clock import Clock
from sift.errors import TargetFailed
from sift.model_requests import UpstreamRequest, UpstreamResponse

#: Never answers: it takes whatever time there is.
STALLED = "stalled"

Answer = UpstreamResponse | BaseException | str


def response(body: bytes = b'{"ok":true}', status: int = 200, media_type: str = "application/json") -> UpstreamResponse:
    return UpstreamResponse(status, media_type, len(body), io.BytesIO(body), "gw-1", {"total_tokens": 3})


class FakeGateway:
    """`answers` by the prompt of the body, one for each try, the last one for ever after; `during` runs while a
    prompt is being answered. `asked` are the requests; `aborted` the prompts whose sender went away."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.answers: dict[str, list[Answer]] = {}
        self.during: dict[str, Callable[[], Awaitable[Any]]] = {}
        self.asked: list[UpstreamRequest] = []
        self.seconds: list[float] = []
        self.aborted: list[str] = []

    @property
    def prompts(self) -> list[str]:
        """What it was asked, in order."""
        return [json.loads(request.body)["prompt"] for request in self.asked]

    @asynccontextmanager
    async def send(self, request: UpstreamRequest, seconds: float) -> AsyncIterator[UpstreamResponse]:
        self.asked.append(request)
        self.seconds.append(seconds)
        prompt = self.prompts[-1]
        arrived = False
        try:
            if prompt in self.during:
                await self.during.pop(prompt)()
            await self._clock.sleep(0.1)
            answers = self.answers.get(prompt, [response()])
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            left = seconds
            while answer == STALLED:
                if left <= 0:
                    raise TargetFailed("timeout", "The gateway did not answer in time.", "Ask for less.")
                await self._clock.sleep(1)
                left -= 1
            if isinstance(answer, BaseException):
                raise answer
            assert isinstance(answer, UpstreamResponse)
            answer.file.seek(0)
            arrived = True
            yield answer
        except asyncio.CancelledError:
            if not arrived:
                self.aborted.append(prompt)
            raise
