"""Scrapy and trafilatura over a site, as `throughput.py` starts it: base address, pages.

Prints seconds, processor seconds, pages and characters as JSON. It imports nothing of sift: it runs in an environment
of its own.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import scrapy
import trafilatura
from scrapy.crawler import CrawlerProcess

AT_ONCE = 10
lengths: list[int] = []


class Spider(scrapy.Spider):
    """One request for each page, its content made in the callback."""

    name = "pages"

    def __init__(self, base: str, count: int) -> None:
        super().__init__()
        self.base, self.count = base, count

    async def start(self) -> Any:
        for number in range(self.count):
            yield scrapy.Request(f"{self.base}/{number}", dont_filter=True)

    def parse(self, response: Any) -> Iterator[Any]:
        text = trafilatura.extract(
            response.text, url=response.url, output_format="markdown", include_links=True, with_metadata=True
        )
        lengths.append(len(text or ""))
        yield from ()


def main(base: str, count: int) -> None:
    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": AT_ONCE, "CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE, "LOG_ENABLED": False,
            "ROBOTSTXT_OBEY": False, "TELNETCONSOLE_ENABLED": False, "DOWNLOAD_DELAY": 0,
        }
    )  # fmt: skip
    process.crawl(Spider, base=base, count=count)
    began, used = time.perf_counter(), sum(os.times()[:4])
    process.start()
    seconds, processor = time.perf_counter() - began, sum(os.times()[:4]) - used
    print(json.dumps({"seconds": seconds, "processor": processor, "pages": len(lengths), "chars": sum(lengths)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
