"""The links of a PDF: addresses of its link annotations, with the text that each covers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from sift.content.links import Link, render_links
from sift.content.pages import describe_pages
from sift.content.pdf import MAX_PAGES, as_typed, open_pdfium, open_pypdf, page_numbers
from sift.errors import TargetFailed


def read_pdf_links(body: bytes, pages: str | None, url: str, *, engine: str) -> tuple[str, dict[str, Any]]:
    """Links of the pages asked for as JSON Lines, and metadata; pypdf, the second engine, gives them without text.

    Raises TargetFailed as `sift.content.pdf.read_pdf`, and empty when there are no links.
    """
    read = _read_pypdf if engine == "pypdf" else _read_pdfium
    found, numbers, total = read(body, pages)
    meta: dict[str, Any] = {"pages": {"total": total, "returned": describe_pages(numbers)}, "warnings": []}
    if len(numbers) == MAX_PAGES < total:
        meta["truncated"] = True
        meta["warnings"].append(f"Only {MAX_PAGES} pages are read at once; ask for the others with `pages`.")
    return render_links((Link(href, text, url) for href, text in found), url, meta), meta


def _read_pdfium(body: bytes, pages: str | None) -> tuple[list[tuple[str, str]], list[int], int]:
    import pypdfium2  # type: ignore[import-untyped]

    document = open_pdfium(body)
    if document is None:
        return _read_pypdf(body, pages)
    found: list[tuple[str, str]] = []
    with document:
        numbers = page_numbers(pages, len(document))
        for number in numbers:
            try:
                found += _page_links(document, number - 1)
            except pypdfium2.PdfiumError:
                continue
        return found, numbers, len(document)


def _page_links(document: Any, index: int) -> Iterator[tuple[str, str]]:
    import pypdfium2.raw as raw  # type: ignore[import-untyped]

    page = document[index]
    text_page = page.get_textpage()
    place, link, rect = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_RECTF()
    try:
        while raw.FPDFLink_Enumerate(page, ctypes.byref(place), ctypes.byref(link)):
            action = raw.FPDFLink_GetAction(link)
            if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
                continue
            length = raw.FPDFAction_GetURIPath(document, action, None, 0)
            address = ctypes.create_string_buffer(length)
            raw.FPDFAction_GetURIPath(document, action, address, length)
            text = ""
            if raw.FPDFLink_GetAnnotRect(link, ctypes.byref(rect)):
                text = text_page.get_text_bounded(rect.left, rect.bottom, rect.right, rect.top)
            yield address.value.decode("utf-8", "replace"), text
    finally:
        text_page.close()
        page.close()


def _read_pypdf(body: bytes, pages: str | None) -> tuple[list[tuple[str, str]], list[int], int]:
    try:
        reader = open_pypdf(body)
        numbers = page_numbers(pages, len(reader.pages))
        found = []
        for number in numbers:
            for annotation in reader.pages[number - 1].annotations or ():
                action = annotation.get_object().get("/A")
                address = action.get_object().get("/URI") if action is not None else None
                if address is not None:
                    found.append((str(address), ""))
        return found, numbers, len(reader.pages)
    except (TargetFailed, MemoryError):
        raise
    except Exception as error:
        raise as_typed(error) from error
