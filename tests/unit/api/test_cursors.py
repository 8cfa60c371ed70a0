"""Cursors: they come back as they went, and anything else is refused."""

from __future__ import annotations

import base64
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift.api import cursors
from sift.errors import Malformed

SALT = "5a17" * 8
places = st.integers(0, 9_000).map(str) | st.from_regex(r"job_[0-9A-Z]{26}", fullmatch=True)


def refused(cursor: str, salt: str = SALT) -> bool:
    try:
        cursors.decode(salt, cursor)
    except Malformed as error:
        return error.code == "bad_cursor"
    return False


@given(places)
def test_a_cursor_comes_back_as_it_went(place: str) -> None:
    cursor = cursors.encode(SALT, place)
    assert cursors.decode(SALT, cursor) == place
    assert cursor.isascii()
    assert all(char.isalnum() or char in "-_" for char in cursor), "it needs no escaping in a query"


@given(places, st.data())
def test_a_changed_character_is_refused(place: str, data: st.DataObject) -> None:
    cursor = cursors.encode(SALT, place)
    at = data.draw(st.integers(0, len(cursor) - 1))
    char = data.draw(st.characters(codec="utf-8").filter(lambda char: char != cursor[at]))
    assert refused(cursor[:at] + char + cursor[at + 1 :])


@given(places, st.data())
def test_a_shorter_or_longer_one_is_refused(place: str, data: st.DataObject) -> None:
    cursor = cursors.encode(SALT, place)
    assert refused(cursor[: data.draw(st.integers(0, len(cursor) - 1))])
    assert refused(cursor + data.draw(st.text(min_size=1)))
    assert refused(data.draw(st.text(min_size=1)) + cursor)


@given(st.text())
def test_anything_else_is_refused(text: str) -> None:
    assert refused(text)


def test_a_cursor_of_another_job_is_refused() -> None:
    assert refused(cursors.encode(SALT, "100"), salt="0" * 32)


def test_a_checksum_does_not_move_to_another_place() -> None:
    checksum = base64.urlsafe_b64decode(cursors.encode(SALT, "100") + "==")[:8]
    for place in (b"101", b"0100", b"100 ", b"-1", b"", "\uff11\uff10\uff10".encode(), b"\xff"):
        assert refused(base64.urlsafe_b64encode(checksum + place).decode().rstrip("="))


def test_what_is_summed_and_is_no_text_is_refused() -> None:
    data = b"\xff\xfe"
    checksum = hmac.digest(SALT.encode(), data, "sha256")[:8]
    assert refused(base64.urlsafe_b64encode(checksum + data).decode().rstrip("="))


@pytest.mark.parametrize("pad", ["=", "==", " ", "\n", "%3D"])
def test_padding_is_not_ignored(pad: str) -> None:
    assert refused(cursors.encode(SALT, "100") + pad)
