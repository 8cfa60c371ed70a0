"""XML read safely: nothing is loaded from outside, no entity is expanded, broken mark-up gives what it can."""

from __future__ import annotations

import re
from typing import Any

from sift.errors import TargetFailed

_LINES = re.compile(r"\s*\n\s*")


def parse_xml(data: str | bytes) -> Any:
    """The root element (lxml) of a document; bytes are read in the character set that they declare.

    References to entities that the document defines stay nodes of their own, unexpanded. Raises TargetFailed
    damaged when there is no element in it, too_large when it is deeper or longer than libxml2 takes.
    """
    from lxml import etree  # type: ignore[import-untyped]

    parser = etree.XMLParser(
        # What was decoded already says so in vain in its declaration.
        encoding="utf-8" if isinstance(data, str) else None,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data.encode("utf-8", "replace") if isinstance(data, str) else data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _damaged() from error
    if root is None:
        raise _damaged()
    return root


def read_xml(text: str) -> tuple[str, dict[str, Any]]:
    """The text of a document without mark-up, one element's text a line, and its metadata (warnings).

    Raises TargetFailed damaged, or empty when there is no text in it.
    """
    root = parse_xml(text)
    parts: list[str] = []
    unexpanded = False
    for event_text, entity in _texts(root):
        unexpanded = unexpanded or entity
        if lines := _LINES.sub("\n", event_text).strip():
            parts.append(lines)
    if not parts:
        raise TargetFailed("empty", "The XML document has no text.", "Leave mode text out to get it as it is.")
    warnings = ["It defines entities of its own; they are not expanded."] if unexpanded else []
    return "\n".join(parts) + "\n", {"warnings": warnings}


def local_name(element: Any) -> str:
    """The name of an element without its namespace, "" for what is no element."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def child_text(element: Any, name: str) -> str:
    """The text of the first child of a name, whatever its namespace."""
    for child in element:
        if local_name(child) == name:
            return "".join(child.itertext()).strip()
    return ""


def _texts(root: Any) -> Any:
    """Stretches of text in document order, and whether each is a reference to an entity."""
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node, False
            continue
        if not isinstance(node.tag, str):
            yield node.text or "", True
            continue
        if node.text:
            yield node.text, False
        for child in reversed(node):
            if child.tail:
                waiting.append(child.tail)
            waiting.append(child)


def _damaged() -> TargetFailed:
    return TargetFailed("damaged", "The XML document cannot be read.", "Use mode raw to get the bytes.")
