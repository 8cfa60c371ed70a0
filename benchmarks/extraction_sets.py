"""Pages with known main content as two public sets lay them out: the article benchmark (AEB) and WCXB."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One page and what people say its content is; `drafted`: they reviewed one extractor's draft of it."""

    group: str
    kind: str  # "aeb" or "wcxb": which F1 is its own
    name: str
    url: str
    path: Path
    gold: str
    page_type: str = ""
    drafted: bool = False

    def read(self) -> bytes:
        """The page as it came."""
        return read_bytes(self.path)


def find_samples(directory: Path) -> tuple[list[Sample], int]:
    """All pages at or below a directory, in a fixed order, and the number of golds whose page is not there.

    AEB is a folder of `ground-truth.json` and `html/`, WCXB one of `ground-truth/*.json` and `html/`.
    """
    found: list[Sample] = []
    missing = 0
    for folder in sorted({path.parent for path in directory.rglob("html") if path.is_dir()}):
        group = folder.relative_to(directory).as_posix() if folder != directory else folder.name
        for sample in (*_read_aeb(folder, group), *_read_wcxb(folder, group)):
            if sample.path.is_file():
                found.append(sample)
            else:
                missing += 1
    return found, missing


def _read_aeb(folder: Path, group: str) -> Iterator[Sample]:
    truth = folder / "ground-truth.json"
    if truth.is_file():
        for name, gold in sorted(json.loads(truth.read_text("utf-8")).items()):
            yield Sample(group, "aeb", name, gold.get("url") or "", _page(folder, name), gold["articleBody"])


def _read_wcxb(folder: Path, group: str) -> Iterator[Sample]:
    for path in sorted((folder / "ground-truth").glob("*.json")):
        gold = json.loads(path.read_text("utf-8"))
        about: dict[str, Any] = gold.get("_internal") or {}
        page_type = about.get("page_type")
        yield Sample(
            group,
            "wcxb",
            path.stem,
            gold.get("url") or "",
            _page(folder, path.stem),
            gold["ground_truth"].get("main_content") or "",
            page_type=str(page_type.get("primary") if isinstance(page_type, dict) else page_type or ""),
            drafted=str(about.get("source") or "").endswith("-draft"),
        )


def _page(folder: Path, name: str) -> Path:
    packed = folder / "html" / f"{name}.html.gz"
    return packed if packed.is_file() else folder / "html" / f"{name}.html"


def read_bytes(path: Path) -> bytes:
    """A file's bytes, unpacked when it is gzip."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
