"""The pages hang together: links resolve, decisions are numbered, nothing of one machine is in them."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import ROOT, broken_links, links, pages, read

DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
PARTS = ["Context", "Decision", "Rejected", "Consequences"]
HOSTS = {"example.com", "example.org", "127.0.0.1", "archive.org", "web.archive.org"}
_URL = re.compile(r"https?://[^\s\"'`)<>]+")
#: Folders of a machine, and where packages come from.
_LOCAL = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|mnt|opt|Users)/|\bpypi\b|\bregistry\b|index-url", re.I)


def local_traces(text: str) -> list[str]:
    """What only makes sense on one machine, or names a host that a page has no business with."""
    hosts = [url for url in _URL.findall(text) if (urlsplit(url.rstrip(".:")).hostname or "") not in HOSTS]
    return _LOCAL.findall(text) + hosts


def by_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_pages_are_found() -> None:
    found = {by_name(page) for page in pages()}
    assert found > {"README.md", "ARCHITECTURE.md", "docs/api.md", "docs/operations.md", "events/README.md"}


@pytest.mark.parametrize("page", pages(), ids=by_name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_noticed() -> None:
    text = "# A title\n[a](#a-title) [b](#b) [c](docs/api.md#routes) [d](docs/api.md#none) [e](none.md) [f](https://x)"
    assert broken_links(ROOT / "README.md", text) == ["#b", "docs/api.md#none", "none.md"]


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        waiting += [
            (page.parent / link.partition("#")[0]).resolve()
            for link in links(page.read_text(encoding="utf-8"))
            if not link.startswith(("#", "http"))
        ]
    folders = {page / "README.md" if page.is_dir() else page for page in reached}
    assert folders >= set(pages())


@pytest.mark.parametrize("page", pages(), ids=by_name)
def test_nothing_of_one_machine_is_in_a_page(page: Path) -> None:
    assert local_traces(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text", ["see /home/ann/x", "from PyPI", "https://packages.example.net/simple", "cd /" + "work/a"]
)
def test_traces_of_a_machine_are_noticed(text: str) -> None:
    assert local_traces(text)


def gaps(numbers: list[int]) -> list[int]:
    return sorted(set(range(1, len(numbers) + 1)) ^ set(numbers))


def test_decisions_are_numbered_without_gaps() -> None:
    assert gaps([int(page.name[:4]) for page in DECISIONS]) == []
    assert len(DECISIONS) > 10
    assert gaps([1, 2, 4]) == [3, 4]
    assert gaps([1, 2, 2]) == [3]


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_its_number_its_parts_and_its_place_in_the_list(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    title = re.match(rf"# {int(page.name[:4])}\. (.+)\n", text)
    assert title is not None
    assert re.findall(r"^## (.+)$", text, re.M) == PARTS
    assert all(part.strip() for part in re.split(r"^## .+$", text, flags=re.M)[1:])
    assert f"| {page.name[:4]} | [{title[1]}]({page.name}) |" in read("docs/decisions/README.md")
