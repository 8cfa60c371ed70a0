"""What the fork server does before its first child: loads all that reading a document can ever load.

Children open no file, so a library that loads something on its first use has to have been used. It is also what
makes them fast: what is loaded here is loaded once, and not for each document anew.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import logging
import time
from encodings.aliases import aliases
from typing import Any

from sift.content import stopwords
from sift.content.allocator import give_back
from sift.content.extraction import PRELOAD, extract
from sift.content.samples import SAMPLES


def prepare() -> None:
    """Import every library, then read a small document of each kind in each way."""
    logging.disable()  # nobody reads what children log
    for name in PRELOAD:
        importlib.import_module(name)
    for name in set(aliases.values()):
        with contextlib.suppress(LookupError):  # the aliases name some of other systems
            codecs.lookup(name)
    time.localtime()  # reads the time zone
    _bound_dates()
    stopwords.thin()
    extract({**_head("text/plain", "robots", ""), "agent": "a"}, b"User-agent: *\nDisallow: /a*b$\n")
    for content_type, body, modes in SAMPLES:
        for mode in modes:
            extract(_head(content_type, mode, "pdfium"), body)
            if content_type == "application/pdf":
                extract(_head(content_type, mode, "pypdf"), body)
    give_back()


def _head(content_type: str, mode: str, engine: str) -> dict[str, Any]:
    return {"url": "http://a.test/", "content_type": content_type, "mode": mode, "pages": None, "engine": engine}


class _NoDates:
    """Finds no date in any text, with the interface of dateparser."""

    def get_date_data(self, text: str) -> dict[str, None]:
        return {"date_obj": None}


def _bound_dates() -> None:
    """Keep htmldate from its last resort, dateparser, which loads 250 languages for one text.

    That takes seconds and 45 MB. Of 233 pages 13 came to it; in three it changed the date, never to the right one.
    """
    from htmldate import extractors

    nothing = _NoDates()
    extractors.get_external_parser = lambda: nothing  # type: ignore[assignment]
    extractors.month_words = frozenset  # type: ignore[assignment]
