"""The project's pages in Markdown: their tables, headings, code blocks and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#+) +(.*)$", re.M)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language ("" where none is named) and its text."""

    language: str
    text: str


def pages() -> list[Path]:
    """Every page of the repository that people read."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "events").glob("*.md")])


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    return [Block(match[1], match[2]) for match in _FENCE.finditer(text)]


def prose(text: str) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    return _LINK.findall(prose(text))


def anchors(text: str) -> set[str]:
    """What the headings of a page can be linked by, as GitHub makes it."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for _, title in _HEADING.findall(prose(text))}


def section(text: str, heading: str) -> str:
    """From a heading to the next of its level or above. Raises KeyError where the page has no such heading."""
    found = [match for match in _HEADING.finditer(text) if match[2] == heading]
    if len(found) != 1:
        raise KeyError(heading)
    start = found[0]
    for match in _HEADING.finditer(text, start.end()):
        if len(match[1]) <= len(start[1]):
            return text[start.end() : match.start()]
    return text[start.end() :]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every row of every table, without heads."""
    lines = prose(text).splitlines()
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("|") and not _is_rule(line) and not _is_rule(following):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def names(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`\n]+)`", text)


def broken_links(page: Path, text: str) -> list[str]:
    """Relative links of a page that lead nowhere."""
    bad = []
    for link in links(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        known = set() if not target.is_file() else anchors(text if target == page else target.read_text("utf-8"))
        if not target.exists() or (anchor and anchor not in known):
            bad.append(link)
    return bad


def _is_rule(line: str) -> bool:
    return re.fullmatch(r"\|[-| :]+\|", line) is not None
