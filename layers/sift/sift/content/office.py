"""Office documents and books to Markdown or text, by their document model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from sift.content.links import Link, render_links
from sift.content.properties import read_properties
from sift.content.sheets import tidy_tables
from sift.content.sniff import OFFICE
from sift.errors import TargetFailed

if TYPE_CHECKING:
    import anydoc

_RAW = "Use mode raw to get the bytes."
# The containers before 2007; the library reads .xls through the same reader as .xlsx.
_LEGACY = {"doc": "application/msword", "xlsx": "application/vnd.ms-excel", "ppt": "application/vnd.ms-powerpoint"}
_OLE = b"\xd0\xcf\x11\xe0"


def read_office(body: bytes, media_type: str, mode: str, url: str) -> tuple[str, str, dict[str, Any]]:
    """Content, its media type and metadata of a document; `media_type` is one of `sniff.OFFICE`, or OLE storage.

    Text is one block a line, cells parted by tabs. Raises TargetFailed encrypted, damaged, empty, too_large or
    unsupported_media.
    """
    import anydoc

    meta: dict[str, Any] = {"media_type": media_type, "warnings": []}
    try:
        form = _format_of(body, media_type)
        meta["media_type"] = _LEGACY[form] if body.startswith(_OLE) and form in _LEGACY else media_type
        if mode in ("text", "links"):
            document = anydoc.to_document(body, form)
            blocks = [*document.blocks, *(block for note in document.notes for block in note.blocks)]
            content = "".join(f"{line}\n" for line in _lines(blocks)) if mode == "text" else ""
        else:
            content = tidy_tables(anydoc.to_markdown_bytes(body, form))
        meta |= read_properties(body, meta["media_type"])
        if mode == "links":
            return render_links(_links(blocks, url), "", meta), "application/x-ndjson", meta
    except anydoc.EncryptedError as error:
        raise TargetFailed("encrypted", "The document is protected by a password.", _RAW, meta=meta) from error
    except anydoc.ResourceLimitError as error:
        raise TargetFailed(
            "too_large", f"The document goes beyond a limit ({error.limit}).", _RAW, meta=meta
        ) from error
    except anydoc.UnsupportedError as error:
        raise TargetFailed(
            "unsupported_media", f"{media_type} of this kind has no reader.", f"Save it in a newer format, or: {_RAW}"
        ) from error
    except anydoc.ConvertError as error:
        raise TargetFailed("damaged", "The document cannot be read.", _RAW, meta=meta) from error
    if not content.strip():
        raise TargetFailed("empty", "The document has no text.", f"It may consist of images. {_RAW}", meta=meta)
    return content, "text/plain" if mode == "text" else "text/markdown", meta


def _format_of(body: bytes, media_type: str) -> anydoc.Format:
    import anydoc

    if not body.startswith(_OLE):
        return cast("anydoc.Format", OFFICE[media_type])
    found = anydoc.format_from_bytes(body)
    if found is None:
        # A protected document of a newer kind is wrapped in an old container; the newer reader knows the wrapping.
        _refuse_encrypted(body)
        raise anydoc.UnsupportedError("no document in the container")
    return found


def _refuse_encrypted(body: bytes) -> None:
    import anydoc

    try:
        anydoc.to_markdown_bytes(body, "docx")
    except anydoc.EncryptedError:
        raise
    except anydoc.ConvertError:
        return


def _lines(blocks: list[anydoc.Block]) -> Iterator[str]:
    """The text of blocks, one line each; `anydoc` bounds their depth."""
    for block in blocks:
        if block.content is not None:
            yield from filter(None, _plain(block.content).split("\n"))
        if block.text:
            yield block.text
        if block.table is not None:
            for row in block.table.grid:
                cells = [" ".join(_lines(slot.cell.blocks)) if slot.cell is not None else "" for slot in row]
                if any(cells):
                    yield "\t".join(cells)
        for inner in _below(block):
            yield from _lines(inner)


def _below(block: anydoc.Block) -> Iterator[list[anydoc.Block]]:
    if block.list is not None:
        for item in block.list.items:
            yield item.blocks
    if block.blocks is not None:
        yield block.blocks


def _plain(content: list[anydoc.Inline]) -> str:
    parts = []
    for inline in content:
        if inline.kind == "line_break":
            parts.append("\n")
        elif inline.content is not None:
            parts.append(_plain(inline.content))
        else:
            parts.append(inline.text or inline.alt or "")
    return "".join(parts)


def _links(blocks: list[anydoc.Block], url: str) -> Iterator[Link]:
    for block in blocks:
        for inline in block.content or ():
            if inline.target is not None and inline.target.kind != "anchor":
                yield Link(inline.target.value, _plain(inline.content or []), url)
        if block.table is not None:
            for row in block.table.grid:
                for slot in row:
                    if slot.cell is not None:
                        yield from _links(slot.cell.blocks, url)
        for inner in _below(block):
            yield from _links(inner, url)
