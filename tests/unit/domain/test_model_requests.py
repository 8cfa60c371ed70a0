"""What a request to the gateway may be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sift.errors import Invalid, RequestRefused, TooLarge
from sift.identity import Identity
from sift.model_requests import MAX_BODY_BYTES, is_open, is_path, read_paths, read_request, refuse_model
from sift.nesting import MAX_LEVELS

BODY = {"prompt": "one"}


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/api/chat", "/v1beta/models/gemini-1.5:generateContent", "/v1/~a/b_c@d", "/x"]
)
def test_paths(path: str) -> None:
    assert is_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "v1/chat", "//evil.example/v1", "/v1//chat", "/v1/", "/v1/../admin", "/v1/./chat", "/..", "/v1/..",
        "/v1/%2e%2e/admin", "/v1/%2Fchat", "/v1/chat?x=1", "/v1/chat#x", "/v1/chat;x=1", "/v1\\chat", "/v1/ch at",
        "http://evil.example/v1", "/@evil.example/v1/..", "/v1/chat\n", "/v1/chat\r\nHost: x", "/v1/\u0441hat",
        "/v1/" + "a" * 600, "/v1/chat\0", " /v1/chat",
    ],
)  # fmt: skip
def test_no_paths(path: str) -> None:
    assert not is_path(path)
    with pytest.raises(Invalid) as caught:
        read_request(3, path, None, BODY)
    assert (caught.value.code, caught.value.extra["index"]) == ("invalid_target", 3)
    assert path == "" or path not in caught.value.detail or path in "/v1/chat/completions"


def test_what_is_open() -> None:
    patterns = read_paths("/v1/*, /api/chat")
    assert patterns == ("/v1/*", "/api/chat")
    assert is_open("/v1/chat/completions", patterns)
    assert is_open("/api/chat", patterns)
    assert not is_open("/api/chats", patterns)
    assert not is_open("/api/pull", patterns)
    assert not is_open("/v1", patterns)
    assert not is_open("/x/v1/chat", patterns)
    assert not is_open("/v10/chat", patterns)
    assert is_open("/a.b", read_paths("/a.b"))
    assert not is_open("/aXb", read_paths("/a.b"))


@pytest.mark.parametrize("text", ["", " , ", "v1/*", "/v1/../*", "/v1/[a]", "/v1/?", "/v1 /x", "https://x/v1/*"])
def test_no_list_of_paths(text: str) -> None:
    with pytest.raises(ValueError, match=r"path"):
        read_paths(text)


def test_the_body_is_sent_as_it_came_in_one_spelling() -> None:
    spec = read_request(0, "/v1/x", None, {"b": [1, 2.5, None, True], "a": {"ü": "\u2028"}}, "mine")
    assert spec.body == '{"b":[1,2.5,null,true],"a":{"ü":"\u2028"}}'
    assert (spec.path, spec.model, spec.label, spec.blob) == ("/v1/x", None, "mine", None)


def test_the_model_of_the_body_is_the_model() -> None:
    assert read_request(0, "/v1/x", None, {"model": "a"}).model == "a"
    assert read_request(0, "/v1/x", "a", {"model": "a"}).body == '{"model":"a"}'
    named = read_request(0, "/v1/x", "a", BODY)
    assert (named.model, json.loads(named.body or "")) == ("a", {"prompt": "one", "model": "a"})


@pytest.mark.parametrize(
    ("model", "body", "field"),
    [
        (None, {}, "body"),
        ("a", {}, "body"),
        ("a", {"model": "b"}, "model"),
        (None, {"model": ["a"]}, "body.model"),
        ("a", {"model": 1}, "body.model"),
        (None, {"model": ""}, "model"),
        ("a b", BODY, "model"),
        ("x" * 201, BODY, "model"),
        ("a\n", BODY, "model"),
        # some gateways read the names of members in any case, and take the last
        (None, {"model": "a", "Model": "b"}, "body"),
        ("a", {"prompt": "one", "MODEL": "b"}, "body"),
        (None, {"x": "\ud800"}, "body"),
        (None, {"x": float("inf")}, "body"),
        (None, {"x": float("nan")}, "body"),
    ],
)
def test_no_bodies(model: str | None, body: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_request(7, "/v1/x", model, body)
    assert caught.value.code == "invalid_target"
    assert caught.value.extra["fields"][0]["field"] == f"requests.7.{field}"


def test_a_body_nested_without_end() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"x": deep}
    with pytest.raises(Invalid):
        read_request(0, "/v1/x", None, deep)
    while deep:  # not all at once, which is too deep for the interpreter too
        deep = deep["x"]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"x":', "}")])
def test_how_deep_a_body_may_be(opening: str, closing: str) -> None:
    def nested(depth: int) -> str:
        return '{"x":' + opening * (depth - 1) + "1" + closing * (depth - 1) + "}"

    deepest = nested(MAX_LEVELS)
    assert read_request(0, "/v1/x", None, json.loads(deepest)).body == deepest
    with pytest.raises(Invalid) as caught:
        read_request(0, "/v1/x", None, json.loads(nested(MAX_LEVELS + 1)))
    assert caught.value.extra["fields"][0]["field"] == "requests.0.body"


def test_a_body_of_the_limit_and_one_byte_more() -> None:
    room = MAX_BODY_BYTES - len(b'{"p":""}')
    assert len((read_request(0, "/v1/x", None, {"p": "x" * room}).body or "").encode()) == MAX_BODY_BYTES
    for text in ("x" * (room + 1), "ü" * (room // 2) + "xx"):
        with pytest.raises(TooLarge) as caught:
            read_request(5, "/v1/x", None, {"p": text})
        assert (caught.value.code, caught.value.extra["index"]) == ("request_too_large", 5)


def _who(allowed: tuple[str, ...] | None, denied: tuple[str, ...] = ()) -> Identity:
    return Identity("acme", "ann", None, ("inference",), allowed_models=allowed, denied_models=denied)


@pytest.mark.parametrize(
    ("who", "model", "fine"),
    [
        (_who(None), "any", True),
        (_who(None), None, True),
        (_who(("gpt-4*", "llama3")), "gpt-4o", True),
        (_who(("gpt-4*", "llama3")), "llama3", True),
        (_who(("gpt-4*", "llama3")), "llama3.1", False),
        (_who(("gpt-4*",)), "GPT-4o", False),
        (_who(("gpt-4*",), ("*-mini",)), "gpt-4o-mini", False),
        (_who(("*",), ("gpt-4*",)), "GPT-4o", False),
        (_who(None, ("gpt-4*",)), "gpt-3", True),
        (_who(()), "any", False),
        # which model the gateway would take, nobody knows
        (_who(("*",)), None, False),
        (_who(None, ("gpt-4*",)), None, False),
    ],
)
def test_models(who: Identity, model: str | None, fine: bool) -> None:
    assert (refuse_model(who, model) is None) == fine


def test_refusals_show_nothing_of_the_body() -> None:
    with pytest.raises(RequestRefused) as caught:
        read_request(0, "/v1/x", "a", {"model": "s3cret"})
    assert "s3cret" not in str(caught.value.extra) + caught.value.detail
