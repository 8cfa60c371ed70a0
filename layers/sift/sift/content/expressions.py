"""XPath expressions as searches in Python, which judge each set of attributes once for all elements that have it.

libxml2 calls Python for each element and each regular expression of trafilatura's, and that is half the time of an
extraction; but the elements of a page share a few dozen classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

#: Sets of attributes of which a search remembers what it found.
MAX_JUDGED = 4_000

Attributes = Mapping[str, str]
Condition = Callable[[Any, Attributes], bool]
_Value = Callable[[Attributes], str]

_TOKEN = re.compile(r"\s*('[^']*'|\"[^\"]*\"|self::[\w-]+|@[\w-]+|\.//(?:\*|\w+)|[\w:-]+|[\[\]()|=,])")


def replace(expression: Any) -> Any:
    """A search in the place of an expression (lxml's XPath) every word of which is understood here; else the same."""
    try:
        return Search(expression.path)
    except (_NotUnderstood, AttributeError):
        return expression


class _NotUnderstood(Exception):
    """An expression that says more than conditions on tags and attributes."""


class Search:
    """What a compiled XPath of the form `.//*[self::a or self::b][condition]` finds below an element, in order.

    With `[1]` after it, the first of each parent; with that behind brackets around it all, the first. A condition is
    put together of tags, attributes, literals, `or`, `not`, `=`, contains, starts-with, translate and re:test, and
    holds for no element without attributes; in those after the first, `.//a` may stand too. Another path is refused.
    """

    def __init__(self, path: str) -> None:
        reader = _Reader(path)
        self.path = path
        self._tags, self._names, self._of_tag = reader.tags, frozenset(reader.names), reader.of_tag
        self._conditions, self._deep = reader.conditions, reader.deep
        self._first_of_parent, self._first = reader.first_of_parent, reader.first
        self._judged: dict[Any, bool] = {}

    def __call__(self, tree: Any) -> list[Any]:
        """The elements below `tree`."""
        found = self._find(tree)
        if self._first:
            return list(islice(found, 1))
        if self._first_of_parent:
            firsts: dict[Any, Any] = {}
            for element in found:
                firsts.setdefault(element.getparent(), element)
            return list(firsts.values())
        return list(found)

    def _find(self, tree: Any) -> Iterator[Any]:
        names, judged, of_tag = self._names, self._judged, self._of_tag
        for element in tree.iterdescendants(*self._tags):
            stated = element.items()
            if not stated:
                continue
            key: Any = tuple([pair for pair in stated if pair[0] in names])
            if not key:
                continue
            if of_tag:
                key = (element.tag, *key)
            holds = judged.get(key)
            if holds is None:
                attributes = dict(stated)
                holds = all(condition(element, attributes) for condition in self._conditions)
                if len(judged) < MAX_JUDGED:
                    judged[key] = holds
            if holds and all(condition(element, dict(stated)) for condition in self._deep):
                yield element


class _Reader:
    """Reads a path, by recursive descent; raises _NotUnderstood."""

    def __init__(self, path: str) -> None:
        self._tokens: list[str] = []
        place = 0
        for match in _TOKEN.finditer(path):
            if match.start() != place:
                raise _NotUnderstood
            self._tokens.append(match[1])
            place = match.end()
        if path[place:].strip():
            raise _NotUnderstood
        self._tokens.reverse()
        self.names: set[str] = set()
        self.conditions: list[Condition] = []
        self.deep: list[Condition] = []
        self.of_tag = self.looks_below = self.first = self.first_of_parent = False
        self._read()

    def _read(self) -> None:
        bracketed = self._skip("(")
        self._expect(".//*", "[")
        self.tags = self._read_tags()
        if not self.tags:
            self.tags = ("*",)
            self._tokens.append("[")
        while not self.first_of_parent and self._skip("["):
            if self._skip("1"):
                self.first_of_parent = True
            else:
                self.looks_below = False
                condition = self._read_either()
                (self.deep if self.looks_below else self.conditions).append(condition)
            self._expect("]")
        if bracketed:
            self._expect(")", "[", "1", "]")
            self.first = True
        if self._tokens or not self.conditions or (self.first and self.first_of_parent):
            raise _NotUnderstood
        bare = [etree.Element("div" if tag == "*" else tag) for tag in self.tags]
        if any(all(condition(element, {}) for condition in self.conditions) for element in bare):
            raise _NotUnderstood

    def _read_tags(self) -> tuple[str, ...]:
        """The names of `self::a or self::b]`, or none where something else follows."""
        before, tags = self._tokens[:], []
        while self._peek().startswith("self::"):
            tags.append(self._tokens.pop()[6:])
            if self._skip("]"):
                return tuple(tags)
            self._expect("or")
        self._tokens = before
        return ()

    def _read_either(self) -> Condition:
        parts = [self._read_condition()]
        while self._skip("or"):
            parts.append(self._read_condition())
        return lambda element, attributes: any(part(element, attributes) for part in parts)

    def _read_condition(self) -> Condition:
        word = self._peek()
        if word.startswith("self::"):
            self._tokens.pop()
            self.of_tag = True
            return lambda element, _: bool(element.tag == word[6:])
        if word.startswith(".//"):
            self._tokens.pop()
            self.looks_below = True
            return lambda element, _: element.find(word) is not None
        if word.startswith("@"):
            name = self._read_name()
            if not self._skip("="):
                return lambda _, attributes: name in attributes
            literal = self._read_literal()
            return lambda _, attributes: attributes.get(name) == literal
        if word == "not":
            self._expect("not", "(")
            inner = self._read_either()
            self._expect(")")
            return lambda element, attributes: not inner(element, attributes)
        return self._read_test()

    def _read_test(self) -> Condition:
        function = self._tokens.pop() if self._tokens else ""
        self._expect("(")
        value = self._read_value()
        self._expect(",")
        literal = self._read_literal()
        flags = self._read_literal() if self._skip(",") else ""
        self._expect(")")
        if function == "re:test" and flags in ("", "i"):
            search = re.compile(literal, re.IGNORECASE if flags else 0).search
            return lambda _, attributes: search(value(attributes)) is not None
        if function == "contains" and not flags:
            return lambda _, attributes: literal in value(attributes)
        if function == "starts-with" and not flags:
            return lambda _, attributes: value(attributes).startswith(literal)
        raise _NotUnderstood

    def _read_value(self) -> _Value:
        if self._skip("translate"):
            self._expect("(")
            inner = self._read_value()
            self._expect(",")
            old = self._read_literal()
            self._expect(",")
            new = self._read_literal()
            self._expect(")")
            if len(old) != len(new):
                raise _NotUnderstood
            table = str.maketrans(old, new)
            return lambda attributes: inner(attributes).translate(table)
        names = [self._read_name()]
        while self._skip("|"):
            names.append(self._read_name())
        if len(names) == 1:
            name = names[0]
            return lambda attributes: attributes.get(name, "")
        # Of several attributes, XPath takes the one that the page has first.
        return lambda attributes: next((value for name, value in attributes.items() if name in names), "")

    def _read_name(self) -> str:
        if not self._peek().startswith("@"):
            raise _NotUnderstood
        name = self._tokens.pop()[1:]
        self.names.add(name)
        return name

    def _read_literal(self) -> str:
        if self._peek()[:1] not in ("'", '"'):
            raise _NotUnderstood
        return self._tokens.pop()[1:-1]

    def _peek(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def _skip(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._tokens.pop()
        return True

    def _expect(self, *tokens: str) -> None:
        for token in tokens:
            if not self._skip(token):
                raise _NotUnderstood
