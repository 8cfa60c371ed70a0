"""Options together: every pair either goes together or is refused by name, before anything is fetched."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import pytest

from sift.clashes import Clash, find_clash
from sift.targets import FetchOptions, Mode

VALUES: dict[str, Any] = {"pages": "1-2", "grep": "a|b", "jq": ".a", "question": "how high?", "context": 2}

# A pair that does not go together: the option to change, and the code of a target that got through with it.
CLASHES: dict[frozenset[str], tuple[str, str]] = {
    frozenset({"raw", "pages"}): ("pages", "bad_pages"),
    frozenset({"raw", "question"}): ("question", "unsupported_option"),
    frozenset({"jq", "grep"}): ("grep", "bad_grep"),
    frozenset({"jq", "pages"}): ("jq", "bad_jq"),
    frozenset({"jq", "article"}): ("jq", "bad_jq"),
    frozenset({"jq", "page"}): ("jq", "bad_jq"),
    frozenset({"context", "pages"}): ("context", "unsupported_option"),
    frozenset({"context", "jq"}): ("context", "unsupported_option"),
    **{frozenset({"context", mode}): ("context", "unsupported_option") for mode in get_args(Mode) if mode != "auto"},
}
MODES = [mode for mode in ("article", "page", "text", "raw") if mode in get_args(Mode)]
PAIRS = [pair for pair in itertools.combinations([*MODES, *VALUES], 2) if not set(pair) <= set(MODES)]


def options(*names: str) -> FetchOptions:
    given = {name: VALUES[name] for name in names if name in VALUES}
    mode = next((name for name in names if name not in VALUES), "auto")
    return FetchOptions(mode=mode, **given)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_pair(pair: tuple[str, str]) -> None:
    clash = find_clash(options(*pair))
    expected = CLASHES.get(frozenset(pair))
    assert (clash and (clash.option, clash.code)) == expected
    if clash:
        assert clash.detail
        assert clash.hint


@pytest.mark.parametrize("name", [*VALUES, *MODES])
def test_every_option_alone(name: str) -> None:
    clash = find_clash(options(name))
    assert (clash and clash.option) == ("context" if name == "context" else None)


@pytest.mark.parametrize(
    "names",
    [
        ("grep", "context"), ("question", "context"), ("grep", "question", "context"), ("raw", "grep", "context"),
        ("text", "pages", "grep", "question", "context"), ("jq", "question", "context"), ("text", "jq", "question"),
        ("raw", "jq"), ("article", "grep", "question"), ("page", "pages", "grep", "context"),
    ],
)  # fmt: skip
def test_more_that_go_together(names: tuple[str, ...]) -> None:
    assert find_clash(options(*names)) is None


@pytest.mark.parametrize("size", [3, 4])
def test_what_clashes_in_a_pair_clashes_among_others(size: int) -> None:
    companions = {"context": {"grep", "question"}}
    for names in itertools.combinations(VALUES, size):
        bad = [
            pair
            for pair in CLASHES
            if pair <= set(names) and not any(companions.get(one, set()) & set(names) for one in pair)
        ]
        assert isinstance(find_clash(options(*names)), Clash) == bool(bad), names
