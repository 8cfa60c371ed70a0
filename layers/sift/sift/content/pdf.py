"""PDF to text, page by page: pdfium first, pypdf when that refuses or dies."""

from __future__ import annotations

import ctypes
import io
import re
from typing import Any

from sift.content.pages import describe_pages, select_pages
from sift.errors import TargetFailed

MAX_PAGES = 2000

_LEADERS = "._-\u2013\u2014\u2026\u00b7=*|"
_SPACES = re.compile(r"[ \t\u00a0]+\n")
_GAPS = re.compile(r"\n{3,}")
# What a reader could take for the mark of a page, in any spelling.
_MARK = re.compile(r"^([ \t]*)(?=<!--[ \t]*page[ \t]+\d)", re.M | re.I)


def read_pdf(body: bytes, pages: str | None, *, separate: str, engine: str) -> tuple[str, dict[str, Any], list[str]]:
    """The text of the pages asked for, what is known of the document, and warnings.

    `separate` is put before every page, formatted with `page`; where it is a mark, a line of the text that looks like
    one gets a backslash. `engine` is `pdfium` or `pypdf`.
    Raises TargetFailed encrypted, damaged, empty, too_large or bad_pages.
    """
    read = _read_pypdf if engine == "pypdf" else _read_pdfium
    texts, meta, total = read(body, pages)
    warnings: list[str] = []
    numbers = [number for number, _ in texts]
    meta["pages"] = {"total": total, "returned": describe_pages(numbers)}
    if len(numbers) == MAX_PAGES < total:
        meta["truncated"] = True
        warnings.append(f"Only {MAX_PAGES} pages are read at once; ask for the others with `pages`.")
    if not any(text for _, text in texts):
        raise TargetFailed(
            "empty", "The pages have no text layer.", "They are probably scanned images; use mode raw.", meta=meta
        )
    if bare := [number for number, text in texts if not text]:
        warnings.append(f"Without text, blank or scanned: page {describe_pages(bare)}.")
    if _is_rubbish("".join(text[:2000] for _, text in texts[:20])):
        warnings.append("The text layer of this PDF decodes to characters that make no sense.")
    # A form feed would part pages as well; `_tidy` leaves none.
    texts = [(number, _MARK.sub(r"\1\\", text)) for number, text in texts] if separate != "\f" else texts
    content = "\n\n".join((separate.format(page=number) + "\n\n" + text).strip("\n ") for number, text in texts)
    return content.strip("\n") + "\n", meta, warnings


def open_pdfium(body: bytes) -> Any:
    """A PDF as pdfium reads it; None where it finds no pages, for pypdf to judge. Raises TargetFailed encrypted."""
    import pypdfium2  # type: ignore[import-untyped]
    import pypdfium2.raw as raw  # type: ignore[import-untyped]

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise _protected() from error
        return None
    if len(document):
        return document
    document.close()
    return None


def open_pypdf(body: bytes) -> Any:
    """A PDF as pypdf reads it. Raises TargetFailed encrypted, and errors of every type for a broken file."""
    import pypdf

    reader = pypdf.PdfReader(io.BytesIO(body), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise _protected()
    return reader


def _read_pdfium(body: bytes, pages: str | None) -> tuple[list[tuple[int, str]], dict[str, Any], int]:
    import pypdfium2

    document = open_pdfium(body)
    if document is None:
        return _read_pypdf(body, pages)
    with document:
        total = len(document)
        texts = []
        for number in page_numbers(pages, total):
            try:
                texts.append((number, _tidy(_page_text(document, number - 1))))
            except pypdfium2.PdfiumError:
                texts.append((number, ""))
        info = document.get_metadata_dict(skip_empty=True)
        info["Lang"] = _language(document)
        labels = {str(number): document.get_page_label(number - 1) for number, _ in texts}
    return texts, _describe(info, labels), total


def _language(document: Any) -> str:
    import pypdfium2.raw as raw

    buffer = (ctypes.c_ushort * 64)()
    length = raw.FPDFCatalog_GetLanguage(document, buffer, ctypes.sizeof(buffer))
    if not 2 < length <= ctypes.sizeof(buffer):
        return ""
    return bytes(buffer)[: length - 2].decode("utf-16-le", "replace")


def _page_text(document: Any, index: int) -> str:
    import pypdfium2.raw as raw

    page = document[index]
    try:
        # Flattening turns form fields and annotations into page text; it shows only once the page is loaded again.
        raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
    finally:
        page.close()
    page = document[index]
    text_page = page.get_textpage()
    try:
        return str(text_page.get_text_bounded())
    finally:
        text_page.close()
        page.close()


def _read_pypdf(body: bytes, pages: str | None) -> tuple[list[tuple[int, str]], dict[str, Any], int]:
    try:
        reader = open_pypdf(body)
        total = len(reader.pages)
        texts = []
        for number in page_numbers(pages, total):
            texts.append((number, _tidy(reader.pages[number - 1].extract_text())))
        info = {str(key).lstrip("/"): str(value) for key, value in (reader.metadata or {}).items()}
        info["Lang"] = str(reader.root_object.get("/Lang") or "")
        named = reader.page_labels if "/PageLabels" in reader.root_object else []
        labels = {str(number): named[number - 1] for number, _ in texts if number <= len(named)}
    except (TargetFailed, MemoryError):
        raise
    except Exception as error:  # pypdf meets broken files with errors of every type
        raise as_typed(error) from error
    return texts, _describe(info, labels), total


def as_typed(error: Exception) -> TargetFailed:
    """What an error of pypdf says of the document: encrypted, too_large or damaged."""
    from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError

    if isinstance(error, (FileNotDecryptedError, DependencyError)):
        return _protected()
    if isinstance(error, LimitReachedError):
        return TargetFailed("too_large", "The PDF unpacks to more than it may.", "Ask for fewer `pages`.")
    return TargetFailed("damaged", "The PDF cannot be read.", "Use mode raw to get the bytes.")


def page_numbers(pages: str | None, total: int) -> list[int]:
    """The pages to read, at most MAX_PAGES; raises TargetFailed bad_pages, or damaged when there are none."""
    if total == 0:
        raise TargetFailed("damaged", "The PDF has no pages.", "Use mode raw to get the bytes.")
    return select_pages(pages, total)[:MAX_PAGES]


def _tidy(text: str) -> str:
    # pdfium marks a hyphen at a line's end with U+FFFE; the word goes on in the next line.
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe\n", "").replace("\ufffe", "")
    text = text.replace("\x00", "").replace("\f", "\n").encode("utf-8", "replace").decode("utf-8")
    return _GAPS.sub("\n\n", _SPACES.sub("\n", text)).strip()


def _describe(info: dict[str, str], labels: dict[str, str]) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    for key, name in (("Title", "title"), ("Author", "author"), ("Subject", "description"), ("Lang", "language")):
        if info.get(key, "").strip():
            meta[name] = info[key].strip()[:1000]
    date = re.match(r"D?:?(\d{4})(\d{2})(\d{2})", info.get("CreationDate", ""))
    if date:
        meta["published"] = f"{date[1]}-{date[2]}-{date[3]}"
    named = {number: label for number, label in labels.items() if label and label != number}
    if named:
        meta["page_labels"] = named
    return meta


def _is_rubbish(text: str) -> bool:
    shown = [character for character in text if not character.isspace()]
    strange = sum(
        1 for character in shown if character == "\ufffd" or character < " " or "\ue000" <= character <= "\uf8ff"
    )
    # A font without a map gives signs where letters stood; leaders and rules of tables are signs too, and count not.
    letters = sum(1 for character in shown if character.isalnum())
    signs = sum(1 for character in shown if character not in _LEADERS) - letters
    return len(shown) > 50 and (strange * 5 > len(shown) or signs > 2 * letters)


def _protected() -> TargetFailed:
    """The error of a document that asks for a password."""
    return TargetFailed("encrypted", "The PDF is protected by a password.", "Use mode raw to get the bytes.")
