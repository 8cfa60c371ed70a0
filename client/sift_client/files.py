"""Content as files: where each target's content goes and how it gets there whole."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sift_client.shapes import Slot, address

_EXTENSIONS = {
    "text/markdown": "md",
    "text/html": "html",
    "text/csv": "csv",
    "text/plain": "txt",
    "text/xml": "xml",
    "application/xml": "xml",
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "application/pdf": "pdf",
}


def name_file(slot: Slot) -> str:
    """`0003-articles-tide-tables.md`: sorts by index, says what it is, and holds nothing a shell would mind."""
    parts = urlsplit(address(slot))
    words = unquote(parts.path).rsplit(".", 1)[0] if "." in parts.path.rsplit("/", 1)[-1] else unquote(parts.path)
    slug = _slug(words) or _slug(parts.hostname or "") or "content"
    return f"{slot['index']:04d}-{slug}.{_extension(slot.get('media_type') or '')}"


def name_folder(out: Path, job_id: str) -> Path:
    """The folder of one job. The id comes from the service, so nothing in it may lead out of `out`."""
    return out / (re.sub(r"[^A-Za-z0-9_-]", "-", job_id) or "job")


def write_file(path: Path, body: bytes) -> None:
    """Write the file whole or not at all, so that what is there under its name can be used at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(body)
    os.replace(partial, path)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[-60:].strip("-")


def _extension(media_type: str) -> str:
    kind = media_type.split(";")[0].strip().lower()
    if kind in _EXTENSIONS:
        return _EXTENSIONS[kind]
    if kind.endswith("+json"):
        return "json"
    if kind.endswith("+xml"):
        return "xml"
    return "txt" if kind.startswith("text/") else "bin"
