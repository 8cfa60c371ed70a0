"""A page's tree to Markdown: headings, lists, links, code and valid tables."""

from __future__ import annotations

import re

from sift.content.dom import Element, collapse, urljoin_safe
from sift.content.tables import is_code_table, is_data_table, read_grid, render_grid

_ESCAPED = re.compile(r"([\\`*\[\]])|(?<!\w)(_)|(_)(?!\w)|(<)(?=[A-Za-z/!])")
_MARKS = re.compile(r"[\\`*\[\]_<]")
_LINE_START = re.compile(r"^(\s*)(#{1,6}(?=\s)|[>+-](?=\s)|\d{1,9}(?=[.)]\s))", re.M)
_SPACES, _OTHER_SPACE = re.compile(r"[ \t\r\f\u00a0]+"), re.compile(r"[\t\r\f\u00a0]")
_LINE_END, _LINE_ENDS = re.compile(r" *\n *"), re.compile(r"(?:  \n){2,}")
_ITEM = re.compile(r"(?:- |\d+\. )")
_UNSAFE = re.compile(r"[\s<>()]")
_HEADING_MARK = re.compile(r"#{1,6} ")
_LANGUAGE = re.compile(r"(?:^|\s)(?:lang(?:uage)?|highlight-source|brush:)[-: ]?([A-Za-z0-9+#_-]{1,20})")
# One line of text without a link in it, and the mark of a heading before it.
_LINE = re.compile(r"(#{1,6} |)((?:(?!\]\()[^\n|])+)")
_EMPHASIS = {"strong": "**", "b": "**", "em": "*", "i": "*", "cite": "*", "del": "~~", "s": "~~"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_LINKS = ("http://", "https://", "mailto:", "tel:", "ftp://")


class Renderer:
    """Turns an element into Markdown. `base`: the address that its links are relative to."""

    def __init__(self, base: str, *, images: bool = False) -> None:
        self._base = base
        self._images = images

    def render(self, element: Element) -> str:
        """The Markdown of an element's content, ending in one line end, or ""."""
        text = "\n\n".join(self._blocks(element))
        return text + "\n" if text else ""

    def _blocks(self, element: Element) -> list[str]:
        out: list[str] = []
        run: list[Element | str] = []
        for child in element.children:
            if isinstance(child, str) or not (child.is_block or child.holds_block):
                if child:
                    run.append(child)
                continue
            self._flush(run, out)
            out += self._block(child)
        self._flush(run, out)
        return out

    def _flush(self, run: list[Element | str], out: list[str]) -> None:
        if not run:
            return
        if any(not isinstance(node, str) or not node.isspace() for node in run) and (text := self._join(run).strip()):
            # At a line's start, where there is one line: a search would look at each letter.
            if "\n" in text or _LINE_START.match(text):
                text = _LINE_START.sub(r"\1\\\2", text)
            out.append(text)
        run.clear()

    def _block(self, element: Element) -> list[str]:
        tag = element.tag
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            text = collapse(self._inline(element)).strip()
            return [f"{'#' * int(tag[1])} {text}"] if text else []
        if tag == "pre":
            return self._code(element)
        if tag == "hr":
            return []
        if tag in ("ul", "ol", "menu", "dir"):
            return self._list(element)
        if tag == "table":
            return self._table(element)
        blocks = self._blocks(element)
        if tag == "a":
            return self._link_blocks(element, blocks)
        if tag == "blockquote":
            inner = "\n\n".join(blocks)
            return ["\n".join(f"> {line}".rstrip() for line in inner.split("\n"))] if inner else []
        return blocks

    def _link_blocks(self, element: Element, blocks: list[str]) -> list[str]:
        """A link around whole blocks, as cards have it, becomes one of its heading, or else of its first line."""
        chosen = next((index for index, block in enumerate(blocks) if block.startswith("#")), 0)
        if blocks and (parts := _LINE.fullmatch(blocks[chosen])):
            blocks[chosen] = parts[1] + self._link(element, parts[2])
        return blocks

    def _code(self, element: Element) -> list[str]:
        text = element.text().strip("\n").rstrip()
        if not text.strip():
            return []
        fence = "```"
        while fence in text:
            fence += "`"
        return [f"{fence}{_language(element)}\n{text}\n{fence}"]

    def _list(self, element: Element) -> list[str]:
        items = []
        number = int(element.attrs["start"]) if element.attrs.get("start", "").isdecimal() else 1
        for child in element.children:
            holder = child if isinstance(child, Element) else Element("li", {}, [child])
            blocks = self._block(holder) if holder.tag in ("ul", "ol") else self._blocks(holder)
            if not blocks:
                continue
            marker = f"{number}. " if element.tag == "ol" else "- "
            number += 1
            indent = " " * len(marker)
            # A list directly below a line of text needs no blank line; other blocks do.
            text = blocks[0]
            for block in blocks[1:]:
                text += ("\n" if _ITEM.match(block) else "\n\n") + block
            lines = text.split("\n")
            items.append(marker + "\n".join([lines[0], *(indent + line if line else "" for line in lines[1:])]))
        return ["\n".join(items)] if items else []

    def _table(self, element: Element) -> list[str]:
        if (code := is_code_table(element)) is not None:
            return self._code(code)
        if not is_data_table(element):
            return self._blocks(element)
        grid = read_grid(element)
        rendered = [[self._cell(cell) if cell is not None else "" for cell in row] for row in grid]
        if not any(text for row in rendered for text in row):
            return []
        caption = next(
            (child for child in element.children if isinstance(child, Element) and child.tag == "caption"), None
        )
        title = collapse(self._inline(caption)).strip() if caption is not None else ""
        return [*([title] if title else []), render_grid(rendered)]

    def _cell(self, element: Element) -> str:
        """The content of a table cell on one line, its blocks parted by `<br>`."""
        lines = [_HEADING_MARK.sub("", line.strip()) for block in self._blocks(element) for line in block.split("\n")]
        return "<br>".join(line for line in lines if line).replace("|", "\\|")

    def _inline(self, element: Element) -> str:
        return self._join(element.children) if element.children else ""

    def _join(self, nodes: list[Element | str]) -> str:
        text = "".join([self._inline_node(node) for node in nodes if node])
        if not text:
            return ""
        if "  " in text or _OTHER_SPACE.search(text):
            text = _SPACES.sub(" ", text)
        return _LINE_ENDS.sub("  \n", _LINE_END.sub("  \n", text)) if "\n" in text else text

    def _inline_node(self, node: Element | str) -> str:
        if isinstance(node, str):
            text = collapse(node)
            return _ESCAPED.sub(lambda match: "\\" + match[0], text) if _MARKS.search(text) else text
        if node.tag == "br":
            return "\n"
        if node.tag == "img":
            return self._image(node)
        if node.tag in _CODE:
            return _wrap_code(node.text())
        text = self._inline(node)
        if not text:
            return ""
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
        safe = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), target)
        return _around(text, "[", f"]({safe})")

    def _image(self, node: Element) -> str:
        source = urljoin_safe(self._base, node.attrs.get("src", "").strip())
        if not self._images or not source.startswith(("http://", "https://")):
            return ""
        return f"![{collapse(node.attrs.get('alt', '')).strip()}]({source.replace(' ', '%20')})"


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
