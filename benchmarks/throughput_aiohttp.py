"""aiohttp and trafilatura over a site, as `throughput.py` starts it: base address, pages, processes.

Prints seconds, processor seconds, pages and characters as JSON. It imports nothing of sift: it runs in an environment
of its own.
"""

import asyncio
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import aiohttp
import trafilatura

AT_ONCE = 10


def read(html: str, url: str) -> str:
    """Markdown with links and metadata, as sift makes of an article."""
    return trafilatura.extract(html, url=url, output_format="markdown", include_links=True, with_metadata=True) or ""


async def crawl(base: str, count: int, processes: int) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    pool = ProcessPoolExecutor(processes) if processes else None
    numbers = iter(range(count))
    lengths: list[int] = []

    async def work(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            url = f"{base}/{number}"
            async with session.get(url) as response:
                html = await response.text()
            text = await loop.run_in_executor(pool, read, html, url) if pool else read(html, url)
            lengths.append(len(text))

    if pool:  # its processes are there before the clock runs
        warm = "<html><body><article><p>" + "It is warm. " * 50
        await asyncio.gather(*(loop.run_in_executor(pool, read, warm, base) for _ in range(2 * processes)))
    async with aiohttp.ClientSession() as session:
        began, used = time.perf_counter(), sum(os.times()[:4])
        await asyncio.gather(*(work(session) for _ in range(AT_ONCE)))
        seconds = time.perf_counter() - began
    if pool:
        pool.shutdown()
    return {"seconds": seconds, "processor": sum(os.times()[:4]) - used, "pages": len(lengths), "chars": sum(lengths)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(crawl(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
