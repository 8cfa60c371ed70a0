"""A small client of the operator's own model gateway: one OpenAI-compatible chat completion at a time."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

#: An answer of a model is text for people; whatever is larger is none.
MAX_ANSWER_BYTES = 256 * 1024
MAX_TOKENS = 1_000
_BUSY = frozenset({429, 503, 529})


class GatewayFailed(Exception):
    """The gateway gave no completion; its text says why and holds nothing secret."""


class GatewayBusy(GatewayFailed):
    """The gateway asks to come back later; `retry_after` is in seconds, or None when it does not say."""

    def __init__(self, retry_after: float | None) -> None:
        super().__init__("it is busy")
        self.retry_after = retry_after


class Gateway:
    """Talks to `url`, the base address that `/chat/completions` is below (`https://gateway.example/v1`).

    The address is the operator's, so the guard has no say in it; redirects are not followed, and proxies of the
    environment not used. `secret` gives the bearer token, or is None where there is none.
    """

    def __init__(self, url: str, secret: Callable[[], Awaitable[str]] | None, tls: ssl.SSLContext) -> None:
        self._url = url.rstrip("/") + "/chat/completions"
        self._secret = secret
        self._tls = tls

    async def complete(self, model: str, messages: list[dict[str, str]], seconds: float) -> str:
        """The text that the model completes the messages with, within so many seconds.

        Raises GatewayBusy or GatewayFailed.
        """
        import httpx2

        body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS}
        try:
            async with asyncio.timeout(seconds):
                # Nothing is unpacked: the limit on what is read holds for what is held.
                headers = {"Accept-Encoding": "identity", **await self._authorization()}
                async with (
                    httpx2.AsyncClient(verify=self._tls, trust_env=False, timeout=seconds) as client,
                    client.stream("POST", self._url, json=body, headers=headers) as response,
                ):
                    _check(response.status_code, response.headers.get("retry-after", ""))
                    return _text(await _read(response))
        except TimeoutError:
            raise GatewayFailed("it took too long") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
            raise GatewayFailed("it could not be reached") from None

    async def _authorization(self) -> dict[str, str]:
        if self._secret is None:
            return {}
        return {"Authorization": f"Bearer {await self._secret()}"}


def _check(status: int, retry_after: str) -> None:
    if status in _BUSY:
        raise GatewayBusy(float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None)
    if status != 200:
        raise GatewayFailed(f"it answered {status}")


async def _read(response: Any) -> bytes:
    parts, size = [], 0
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
