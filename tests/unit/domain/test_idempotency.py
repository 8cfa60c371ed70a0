"""The same work is recognised as the same, and other work is not."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sift.idempotency import canonical, content_hash, key_hash

WORK = [["https://example.com/", {"mode": "raw", "pages": "1-3"}, "a"]]

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=10,
)


@given(values)
def test_white_space_and_escapes_do_not_matter(value: Any) -> None:
    for written in (json.dumps(value), json.dumps(value, indent=3), json.dumps(value, ensure_ascii=False)):
        assert canonical(json.loads(written)) == canonical(value)


def test_the_order_of_names_does_not_matter() -> None:
    turned = [["https://example.com/", {"pages": "1-3", "mode": "raw"}, "a"]]
    assert content_hash("acme/ann", "fetch", turned) == content_hash("acme/ann", "fetch", WORK)


def test_the_order_of_targets_matters() -> None:
    two: list[list[Any]] = [["https://a.example/", {}, None], ["https://b.example/", {}, None]]
    assert content_hash("acme/ann", "fetch", two) != content_hash("acme/ann", "fetch", two[::-1])


def test_whatever_can_change_a_result_changes_the_hash() -> None:
    others = [
        content_hash("acme/bob", "fetch", WORK),
        content_hash("acme/ann", "inference", WORK),
        content_hash("acme/ann", "fetch", [["https://example.com/", {"mode": "raw"}, "a"]]),
        content_hash("acme/ann", "fetch", [["https://example.com/", {"mode": "raw", "pages": "1-3"}, None]]),
        content_hash("acme/ann", "fetch", [["https://example.com", {"mode": "raw", "pages": "1-3"}, "a"]]),
        content_hash("acme/ann", "fetch", WORK * 2),
        content_hash("acme/ann", "fetch", WORK),
    ]
    assert len(set(others)) == len(others)


def test_unicode_is_taken_as_sent() -> None:
    composed, decomposed = "https://example.com/é", "https://example.com/e\u0301"
    assert canonical([composed]) == '["https://example.com/é"]'.encode()
    assert content_hash("a/b", "fetch", [composed]) != content_hash("a/b", "fetch", [decomposed])


def test_a_key_never_stands_for_content_nor_for_another_callers_key() -> None:
    assert key_hash("acme/ann", "k") == key_hash("acme/ann", "k")
    assert key_hash("acme/ann", "k") != key_hash("acme/bob", "k")
    assert key_hash("acme/ann", "k") != key_hash("acme/ann", "K")
    content = content_hash("acme/ann", "fetch", "k")
    assert content != key_hash("acme/ann", "fetch") != key_hash("acme/ann", content)
    # Where one name ends and the next begins is part of what is hashed.
    assert key_hash("acme/ann", "x") != key_hash("acme/an", "nx")
