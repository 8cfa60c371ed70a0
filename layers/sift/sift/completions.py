"""One OpenAI-compatible chat completion at a time, from the operator's model gateway."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from sift.gateway import BUSY, Gateway, GatewayBusy, GatewayFailed, read_retry_after

#: An answer of a model is text for people; whatever is larger is none.
MAX_ANSWER_BYTES = 256 * 1024
MAX_TOKENS = 1_000


class Completions:
    """Asks the gateway at `/chat/completions` below its base."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def complete(self, model: str, messages: list[dict[str, str]], seconds: float) -> str:
        """The text that the model completes the messages with, within so many seconds.

        Raises GatewayBusy or GatewayFailed.
        """
        import httpx2

        body = json.dumps({"model": model, "messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS})
        url = self._gateway.base + "/chat/completions"
        try:
            async with asyncio.timeout(seconds), self._gateway.post(url, body.encode(), {}, seconds) as response:
                if response.status_code in BUSY:
                    raise GatewayBusy(read_retry_after(response))
                if response.status_code != 200:
                    raise GatewayFailed(f"it answered {response.status_code}")
                return _text(await _read(response))
        except TimeoutError:
            raise GatewayFailed("it took too long") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
            raise GatewayFailed("it could not be reached") from None


async def _read(response: Any) -> bytes:
    parts, size = [], 0
    # Nothing is unpacked: the limit on what is read holds for what is held.
    async for part in response.aiter_raw():
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise GatewayFailed("its answer is too large")
        parts.append(part)
    return b"".join(parts)


def _text(body: bytes) -> str:
    try:
        text = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise GatewayFailed("its answer is no chat completion")
    return text
