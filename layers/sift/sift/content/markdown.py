"""A page's tree to Markdown: headings, lists, links, code and valid tables, with a word in what is kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sift.content.dom import Element, collapse, urljoin_safe
from sift.content.tables import is_code_table, is_data_table, read_grid, render_grid

Keep = Callable[[str], bool]

_ESCAPED = re.compile(r"([\\`*\[\]])|(?<!\w)(_)|(_)(?!\w)|(<)(?=[A-Za-z/!])")
_LINE_START = re.compile(r"^(\s*)(#{1,6}(?=\s)|[>+-](?=\s)|\d{1,9}(?=[.)]\s))", re.M)
_LANGUAGE = re.compile(r"(?:^|\s)(?:lang(?:uage)?|highlight-source|brush:)[-: ]?([A-Za-z0-9+#_-]{1,20})")
_EMPHASIS = {"strong": "**", "b": "**", "em": "*", "i": "*", "cite": "*", "del": "~~", "s": "~~"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_LINKS = ("http://", "https://", "mailto:", "tel:", "ftp://")


@dataclass
class Block:
    """A finished block: `level` 1-6 for a heading (else 0); `kept` False for a heading that only a successor saves."""

    text: str
    level: int = 0
    kept: bool = True


class Renderer:
    """Turns an element into Markdown. `keep` judges the plain text of each leaf block; without it all is kept."""

    def __init__(self, base: str, keep: Keep | None = None, *, images: bool = False) -> None:
        self._base = base
        self._keep: Keep = keep or (lambda text: True)
        self._images = images

    def render(self, element: Element) -> str:
        """The Markdown of an element's content, ending in one line end, or ""."""
        blocks = _settle_headings(self._blocks(element))
        text = "\n\n".join(block.text for block in blocks)
        return text + "\n" if text else ""

    def _blocks(self, element: Element) -> list[Block]:
        out: list[Block] = []
        run: list[Element | str] = []
        for child in element.children:
            if isinstance(child, str) or not (child.is_block or child.holds_block):
                run.append(child)
                continue
            self._flush(run, out)
            out += self._block(child)
        self._flush(run, out)
        return out

    def _flush(self, run: list[Element | str], out: list[Block]) -> None:
        if run:
            holder = Element("p", {}, list(run))
            run.clear()
            plain = holder.text()
            if plain.strip() and self._keep(plain):
                text = _LINE_START.sub(r"\1\\\2", self._inline(holder).strip())
                if text:
                    out.append(Block(text))
            elif self._images and not plain.strip():
                text = self._inline(holder).strip()
                out += [Block(text)] if text else []

    def _block(self, element: Element) -> list[Block]:
        tag = element.tag
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            text = collapse(self._inline(element)).strip()
            return [Block(f"{'#' * int(tag[1])} {text}", int(tag[1]), self._keep(element.text()))] if text else []
        if tag == "pre":
            return self._code(element)
        if tag == "hr":
            return []
        if tag in ("ul", "ol", "menu", "dir"):
            return self._list(element)
        if tag == "table":
            return self._table(element)
        blocks = self._blocks(element)
        if tag == "blockquote":
            inner = "\n\n".join(block.text for block in _settle_headings(blocks))
            return [Block("\n".join(f"> {line}".rstrip() for line in inner.split("\n")))] if inner else []
        return blocks

    def _code(self, element: Element) -> list[Block]:
        text = element.text().strip("\n").rstrip()
        if not text.strip() or not self._keep(text):
            return []
        fence = "```"
        while fence in text:
            fence += "`"
        return [Block(f"{fence}{_language(element)}\n{text}\n{fence}")]

    def _list(self, element: Element) -> list[Block]:
        items = []
        number = int(element.attrs["start"]) if element.attrs.get("start", "").isdecimal() else 1
        for child in element.children:
            holder = child if isinstance(child, Element) else Element("li", {}, [child])
            blocks = _settle_headings(self._block(holder) if holder.tag in ("ul", "ol") else self._blocks(holder))
            if not blocks:
                continue
            marker = f"{number}. " if element.tag == "ol" else "- "
            number += 1
            indent = " " * len(marker)
            # A list directly below a line of text needs no blank line; other blocks do.
            text = blocks[0].text
            for block in blocks[1:]:
                text += ("\n" if re.match(r"(?:- |\d+\. )", block.text) else "\n\n") + block.text
            lines = text.split("\n")
            items.append(marker + "\n".join([lines[0], *(indent + line if line else "" for line in lines[1:])]))
        return [Block("\n".join(items))] if items else []

    def _table(self, element: Element) -> list[Block]:
        if (code := is_code_table(element)) is not None:
            return self._code(code)
        if not is_data_table(element):
            return self._blocks(element)
        grid = read_grid(element)
        filled = [cell.text() for row in grid for cell in row if cell is not None and cell.text().strip()]
        if not filled or sum(self._keep(text) for text in filled) * 2 < len(filled):
            return []
        whole = Renderer(self._base, images=self._images)
        rendered = [[whole.cell(cell) if cell is not None else "" for cell in row] for row in grid]
        caption = next(
            (child for child in element.children if isinstance(child, Element) and child.tag == "caption"), None
        )
        title = collapse(self._inline(caption)).strip() if caption is not None else ""
        return [*([Block(title)] if title else []), Block(render_grid(rendered))]

    def cell(self, element: Element) -> str:
        """The content of a table cell on one line, its blocks parted by `<br>`."""
        lines = [line.strip() for block in self._blocks(element) for line in block.text.split("\n")]
        return "<br>".join(line for line in lines if line).replace("|", "\\|")

    def _inline(self, element: Element) -> str:
        parts = [self._inline_node(child) for child in element.children]
        text = re.sub(r" *\n *", "  \n", re.sub(r"[ \t\r\f\u00a0]+", " ", "".join(parts)))
        return re.sub(r"(?:  \n){2,}", "  \n", text)

    def _inline_node(self, node: Element | str) -> str:
        if isinstance(node, str):
            return _ESCAPED.sub(lambda match: "\\" + match[0], collapse(node))
        if node.tag == "br":
            return "\n"
        if node.tag == "img":
            return self._image(node)
        if node.tag in _CODE:
            return _wrap_code(node.text())
        text = self._inline(node)
        if node.tag in _EMPHASIS:
            return _around(text.replace("  \n", " "), _EMPHASIS[node.tag], _EMPHASIS[node.tag])
        if node.tag == "a":
            return self._link(node, text.replace("  \n", " "))
        return f" {text} " if node.is_block else text.replace("  \n", "\n")

    def _link(self, node: Element, text: str) -> str:
        href = node.attrs.get("href", "").strip()
        target = urljoin_safe(self._base, href) if href and not href.startswith("#") else ""
        if not text.strip() or not target.lower().startswith(_LINKS):
            return text
        safe = re.sub(r"[\s<>()]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), target)
        return _around(text, "[", f"]({safe})")

    def _image(self, node: Element) -> str:
        source = urljoin_safe(self._base, node.attrs.get("src", "").strip())
        if not self._images or not source.startswith(("http://", "https://")):
            return ""
        return f"![{collapse(node.attrs.get('alt', '')).strip()}]({source.replace(' ', '%20')})"


def _settle_headings(blocks: list[Block]) -> list[Block]:
    """Drop a heading that is not kept itself unless text (no equal or higher heading) follows it."""
    out: list[Block] = []
    for index, block in enumerate(blocks):
        if block.level and not block.kept:
            follower = blocks[index + 1] if index + 1 < len(blocks) else None
            if follower is None or (follower.level and follower.level <= block.level):
                continue
        out.append(block)
    return out


def _around(text: str, before: str, after: str) -> str:
    inner = text.strip()
    if not inner:
        return text
    lead = " " if text[0].isspace() else ""
    trail = " " if text[-1].isspace() else ""
    return f"{lead}{before}{inner}{after}{trail}"


def _wrap_code(text: str) -> str:
    text = collapse(text)
    if not text.strip():
        return text
    ticks = "`"
    while ticks in text:
        ticks += "`"
    pad = " " if len(ticks) > 1 else ""
    return _around(text, ticks + pad, pad + ticks)


def _language(element: Element) -> str:
    inner = element.find("code")
    for holder in (inner, element):
        match = _LANGUAGE.search(holder.attrs.get("class", "")) if holder is not None else None
        if match:
            return match[1].lower()
    return ""
