"""trafilatura keeps the same text of a page when it is hastened."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import trafilatura

from sift.content.article import Source
from tests.unit.content.test_expressions import NAMES, VALUES

WORDS = "the harbour authority published a long statement on the state of the northern pier this morning".split()  # noqa: SIM905


def write_page(seed: int) -> str:
    """A page of paragraphs, lists and tables in boxes with names that trafilatura's rules look for."""
    chance = random.Random(seed)

    def text() -> str:
        words = " ".join(chance.choices(WORDS, k=chance.randrange(3, 40)))
        return f"<a href=/x>{words}</a>" if chance.random() < 0.2 else words

    boxes = []
    for _ in range(chance.randrange(2, 30)):
        inner = chance.choice(
            (
                f"<p>{text()}</p><p>{text()} <b>{text()}</b></p>",
                f"<h2>{text()}</h2><p>{text()}<br>{text()}</p>",
                "<ul>" + f"<li>{text()}</li>" * 3 + "</ul>",
                f"<table><tr><td>{text()}</td><td>{text()}</td></tr></table>",
                f"<blockquote>{text()}</blockquote>{text()}",
                f"<div><div>{text()}</div></div>",
            )
        )
        tag = chance.choice(("div", "section", "article", "main", "ul", "p"))
        boxes.append(f'<{tag} {chance.choice(NAMES)}="{chance.choice(VALUES)}">{inner}</{tag}>')
    return f"<html><head><title>T</title></head><body>{''.join(boxes)}</body></html>"


def keep_plainly(html: str, *, quick: bool) -> str:
    """What trafilatura keeps, asked for as its users do."""
    document = trafilatura.bare_extraction(html, fast=quick, include_comments=False)
    text = getattr(document, "text", "")
    return text if isinstance(text, str) else ""


def compare(seeds: range) -> None:
    pages = [write_page(seed) for seed in seeds]
    plain = [(keep_plainly(page, quick=True), keep_plainly(page, quick=False)) for page in pages]
    kept = []
    for page in pages:
        source = Source(page, "http://a.test/")
        kept.append((source.keep_text(quick=True), source.keep_text(quick=False)))
    assert kept == plain
    assert sum(1 for quick, _ in plain if len(quick) > 200) > len(seeds) / 2


def test_the_same_text() -> None:
    # In a process of its own: in this one trafilatura may be hastened already.
    script = "from tests.unit.content import test_hastening as test; test.compare(range(20))"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr[-2_000:]
