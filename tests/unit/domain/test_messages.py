"""The message of a target: what it carries, and what is taken for none."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sift.errors import DataUnreadable
from sift.ids import new_job_id
from sift.messages import Message, RequestMessage, TargetMessage, decode

JOB = new_job_id(1_796_000_000_000, entropy=7)
GOOD: dict[str, Any] = {"v": 1, "job": JOB, "index": 3, "url": "https://example.com/"}

WRONG: list[dict[str, Any]] = [
    {"job": None}, {"job": 3}, {"job": ""}, {"job": "job_0"}, {"job": "key_" + JOB[4:]}, {"job": f"{JOB}\n"},
    {"index": "3"}, {"index": -1}, {"index": 1.0}, {"index": True}, {"index": None}, {"url": None}, {"url": []},
    {"options": []}, {"options": None}, {"options": "mode"}, {"id": 7}, {"id": {}},
]  # fmt: skip

GOOD_REQUEST: dict[str, Any] = {"v": 1, "job": JOB, "index": 3, "path": "/v1/x", "body": "{}"}
WRONG_REQUEST: list[dict[str, Any]] = [
    {"path": None}, {"path": 3}, {"body": None}, {"body": {}}, {"blob": "b"}, {"body": None, "blob": 3}, {"model": 1},
    {"index": -1}, {"id": 7}, {"attempts": "1"}, {"job": "job_0"},
]  # fmt: skip

text = st.text(st.characters(exclude_categories=["Cs"]))


messages = st.builds(
    TargetMessage,
    st.builds(new_job_id, st.integers(0, 2**48 - 1)),
    st.integers(0, 10**6),
    text,
    st.dictionaries(text, text | st.booleans()),
    st.none() | text,
)
requests = st.builds(
    lambda job, index, path, model, inline, body, label, attempts: RequestMessage(
        job, index, path, model, body if inline else None, None if inline else body, label, attempts
    ),
    st.builds(new_job_id, st.integers(0, 2**48 - 1)),
    st.integers(0, 10**6),
    text,
    st.none() | text,
    st.booleans(),
    text,
    st.none() | text,
    st.integers(0, 9),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(messages | requests)
def test_a_message_comes_back_as_it_went(message: Message) -> None:
    assert decode(message.encode()) == message


#: What SQS takes in a body (SendMessage, parameter MessageBody).
SQS = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


@given(messages | requests)
@example(TargetMessage(JOB, 0, "https://example.com/\uffff", {}, "\x00\ufffe"))
@example(RequestMessage(JOB, 0, "/v1/x", None, '{"prompt":"\ufffe\uffff\U0001fffe"}'))
def test_a_queue_takes_every_message(message: Message) -> None:
    assert SQS.fullmatch(message.encode())
    assert decode(message.encode()) == message


def test_a_message_says_no_more_than_it_must() -> None:
    assert json.loads(TargetMessage(JOB, 3, "https://example.com/").encode()) == GOOD
    assert json.loads(RequestMessage(JOB, 3, "/v1/x", None, "{}").encode()) == GOOD_REQUEST


def test_each_message_is_of_its_kind() -> None:
    assert decode(json.dumps(GOOD)).kind == "fetch"
    assert decode(json.dumps(GOOD_REQUEST)).kind == "inference"


@pytest.mark.parametrize(
    "body",
    [
        "", " ", "not json", "{", "null", "3", "[]", '"text"', "{}", "[" * 100_000, '{"v":1}', "\ud800",
        *[json.dumps({**GOOD, **wrong}) for wrong in WRONG],
        *[json.dumps({**GOOD_REQUEST, **wrong}) for wrong in WRONG_REQUEST],
        *[json.dumps({name: value for name, value in GOOD.items() if name != left_out}) for left_out in GOOD],
    ],
)  # fmt: skip
def test_what_was_never_a_message(body: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(body)


@pytest.mark.parametrize("version", [0, 2, "1", [1], {"a": 1}, None])
def test_a_later_version_is_refused_and_not_guessed(version: Any) -> None:
    with pytest.raises(DataUnreadable):
        decode(json.dumps({**GOOD, "v": version}))


@given(st.text() | json_values.map(json.dumps))
def test_nothing_else_ever_escapes(body: str) -> None:
    try:
        decode(body)
    except (ValueError, DataUnreadable):
        return
    raise AssertionError("no message, and it was taken for one")
