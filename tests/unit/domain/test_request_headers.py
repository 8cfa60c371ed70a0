"""Headers of the caller's own: an allow list, limits, and credentials that nothing shows."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sift.request_headers import ALLOWED, CREDENTIALS, TOTAL_CHARS, VALUE_CHARS, check_headers, without_credentials
from sift.targets import FetchOptions

SECRET = "Bearer s3cret\u2013token"
NEVER = [
    *("Host", "Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Upgrade"),
    *("Transfer-Encoding", "Content-Length", "Content-Type", "Content-Encoding", "Accept-Encoding", "Range"),
    *("X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via", "Expect", "Origin", "X-Api-Key", ":path"),
    *("", " ", "Accept ", "Ac\ncept", "Accept:", "Ünïcode", "Cookie\x00", "\u212aey"),
]


@pytest.mark.parametrize("name", NEVER)
def test_what_is_not_on_the_list_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ValueError, match="can't be set") as caught:
        check_headers({name: SECRET})
    assert repr(name) in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ALLOWED.values())
def test_what_is_on_the_list_is_taken_in_any_case(name: str) -> None:
    for form in (name, name.lower(), name.upper()):
        assert check_headers({form: 'W/"a b"; q=0.5, *'}) == {name.lower(): 'W/"a b"; q=0.5, *'}


@pytest.mark.parametrize(
    "value",
    ["", " a", "a ", "a\r\nHost: b", "a\nb", "a\x00b", "a\tb", "ü", "\x7f", "a\u2028b", "x" * (VALUE_CHARS + 1)],
)
def test_a_value_that_may_not_be_sent(value: str) -> None:
    with pytest.raises(ValueError, match="the header Cookie is") as caught:
        check_headers({"cookie": value})
    assert len(value) < 3 or value not in str(caught.value)


def test_sizes() -> None:
    assert check_headers({"cookie": "x" * VALUE_CHARS})
    half = {"cookie": "x" * VALUE_CHARS, "referer": "y" * (TOTAL_CHARS - VALUE_CHARS - len("cookiereferer"))}
    assert check_headers(half) == half
    with pytest.raises(ValueError, match="together"):
        check_headers({**half, "dnt": "1"})


def test_a_name_in_two_spellings_is_refused() -> None:
    with pytest.raises(ValueError, match="Accept is there twice"):
        check_headers({"Accept": "a/b", "accept": "c/d"})


@given(st.dictionaries(st.text(max_size=20) | st.sampled_from([*ALLOWED, *NEVER]), st.text(max_size=20)))
def test_nothing_else_ever_gets_through(headers: dict[str, str]) -> None:
    try:
        checked = check_headers(headers)
    except ValueError:
        return
    assert checked.keys() <= ALLOWED.keys()
    assert all(value.isascii() and value.isprintable() and value == value.strip() for value in checked.values())


def test_options_carry_them_and_their_errors_show_none() -> None:
    assert FetchOptions(headers={"ACCEPT": "a/b"}).headers == {"accept": "a/b"}
    assert FetchOptions().model_dump(exclude_defaults=True) == {}
    for wrong in ({"Authorization": SECRET}, {"Authorization": [SECRET]}, SECRET, {"Host": SECRET}):
        with pytest.raises(ValidationError) as caught:
            FetchOptions.model_validate({"headers": wrong})
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_options_as_they_may_be_kept() -> None:
    headers = {"accept": "a/b", "authorization": "Bearer x", "cookie": "a=b"}
    assert without_credentials({"mode": "raw", "headers": headers}) == {"mode": "raw", "headers": {"accept": "a/b"}}
    assert without_credentials({"headers": {"cookie": "a=b"}}) == without_credentials({}) == {}
    assert set(ALLOWED) >= CREDENTIALS
    assert len(headers) == 3, "what was given is left as it was"
