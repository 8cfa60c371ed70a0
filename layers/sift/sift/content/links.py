"""The links of a document as JSON Lines: absolute URL and text, in order, each address once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sift.content.dom import collapse, urljoin_safe
from sift.errors import TargetFailed

MAX_TEXT_CHARS = 500
#: As many as a sitemap may have (sitemaps.org); those of larger documents are left out, with a warning.
MAX_LINKS = 50_000

_SCHEMES = ("http://", "https://", "mailto:", "tel:", "ftp://")
# What the URL standard takes out of an address, and what would end it for a reader of lines.
_STRIPPED = re.compile(r"[\t\r\n]")
_SPACE = re.compile(r"[\s<>\"]")

_CODE = re.compile(
    r"^(?P<fence>`{3,20}|~{3,20})[^\n]*\n.*?(?:^(?P=fence)|\Z)|(?<!`)(?P<ticks>`{1,9})(?!`)[^`\n]{1,2000}(?P=ticks)",
    re.M | re.S,
)
# Each alternative starts with characters of its own, so that a text which fits nowhere is left in linear time.
_TEXT = r"(?P<text>(?:[^\[\]\\]|\\.|\[[^\[\]]{0,300}\]){0,1000})"
_LINK = re.compile(
    rf"(?<![!\\])\[{_TEXT}\](?:\(\s{{0,9}}(?:<(?P<angled>[^<>\n]{{1,8192}})>|(?P<url>(?:[^\s()\\]|\\.|\([^\s()]{{0,2000}}\)){{1,8192}}))"
    r"(?:\s[^)]{0,1000})?\)|\[(?P<label>[^\[\]]{0,300})\])"
    r"|<(?P<auto>[a-z][a-z0-9+.-]{1,20}:[^\s<>]{1,8192})>"
    r"|(?P<bare>\bhttps?://(?:[^\s<>\"`\[\]()]|\([^\s<>()]{0,500}\)){1,8192})",
    re.I | re.S,
)
_DEFINITION = re.compile(r"^ {0,3}\[(?P<label>[^\[\]]{1,300})\]:\s{0,9}<?(?P<url>[^\s<>]{1,8192})>?.*$", re.M)
_IMAGE = re.compile(r"!\[([^\]]{0,300})\]\([^)]{0,2000}\)")
_EMPHASIS = re.compile(r"\\([\\`*_{}\[\]()#+.!<>|-])|[*`]|(?<!\w)_|_(?!\w)")


@dataclass(frozen=True)
class Link:
    """A link as it stands: its address, its text, and the address that a relative one is relative to."""

    href: str
    text: str
    base: str


def render_links(links: Iterable[Link], page_url: str, meta: dict[str, Any]) -> str:
    """One JSON object `{"url", "text"}` a line, of the first `MAX_LINKS` links; `meta` is told where there are more.

    An address that comes again gives its text to the first if that has none. Links within `page_url` itself and
    those of scripts are left out; the spelling of an address stays as it is.
    Raises TargetFailed empty when none is left.
    """
    found: dict[str, str] = {}
    own = page_url.partition("#")[0]
    waiting = iter(links)
    for link in islice(waiting, MAX_LINKS):
        url = absolute(link)
        if not url or ("#" in url and own and url.partition("#")[0] == own):
            continue
        text = collapse(link.text).strip()[:MAX_TEXT_CHARS]
        found[url] = found.get(url) or text
    if not found:
        raise TargetFailed("empty", "The document has no links.", "Leave the mode out to read its text.")
    if next(waiting, None) is not None:
        note_cut(meta, f"Only the first {MAX_LINKS} links of the document were read.")
    return "".join(json.dumps({"url": url, "text": text}, ensure_ascii=False) + "\n" for url, text in found.items())


def note_cut(meta: dict[str, Any], warning: str) -> None:
    """Say in a document's meta that some of it was left out."""
    meta |= {"truncated": True, "warnings": [*meta.get("warnings", ()), warning]}


def find_page_links(html: str, base: str) -> Iterator[Link]:
    """Links (`a`, `area`) of an HTML page; one without text is called what its image or its title says."""
    import turbohtml

    for node in turbohtml.parse(html, positions=False).find_all(["a", "area"]):
        if href := _attribute(node, "href"):
            text = node.text if node.text.strip() else ""
            text = text or next((alt for image in node.find_all("img") if (alt := _attribute(image, "alt"))), "")
            text = text or _attribute(node, "alt") or _attribute(node, "aria-label") or _attribute(node, "title")
            yield Link(href, text, base)


def find_markdown_links(text: str, base: str) -> Iterator[Link]:
    """Links of a Markdown document or a plain text: inline, by reference, in angle brackets, or bare."""
    text = _CODE.sub(" ", text)
    defined = {match["label"].casefold(): match["url"] for match in _DEFINITION.finditer(text)}
    for match in _LINK.finditer(_DEFINITION.sub("", text)):
        if bare := match["bare"]:
            yield Link(bare.rstrip(".,;:!?'*_"), "", base)
        elif auto := match["auto"]:
            yield Link(auto, "", base)
        else:
            label = match["label"]
            href = (
                match["angled"]
                or match["url"]
                or (defined.get((label or match["text"]).casefold(), "") if label is not None else "")
            )
            yield Link(re.sub(r"\\(.)", r"\1", href), plain_text(match["text"]), base)


def plain_text(markdown: str) -> str:
    """A piece of inline Markdown without its marks; images by their description."""
    return _EMPHASIS.sub(r"\1", _IMAGE.sub(r"\1", markdown))


def _attribute(node: Any, name: str) -> str:
    value = node.attrs.get(name)
    return (" ".join(value) if isinstance(value, list) else value or "").strip()


def absolute(link: Link) -> str:
    """The absolute address of a link, without spaces and what else would end it; "" for one that leads nowhere."""
    href = _STRIPPED.sub("", link.href.strip())
    if not href or href.startswith("#"):
        return ""
    url = urljoin_safe(link.base, href)
    if not url.lower().startswith(_SCHEMES):
        return ""
    return _SPACE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), url)
