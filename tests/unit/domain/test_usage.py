"""Token usage is found wherever the three dialects put it, however the body is cut into pieces."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift.usage import MAX_COUNTS, MAX_TOKENS, WHOLE_BYTES, Usage

CHAT = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21, "prompt_tokens_details": {"cached_tokens": 4}}


def read(body: bytes, media_type: str = "application/json", piece: int = 65_536) -> Any:
    usage = Usage(media_type)
    for start in range(0, len(body), piece):
        usage.feed(body[start : start + piece])
    return usage.end()


def padded(document: dict[str, Any], size: int = WHOLE_BYTES, *, last: bool = False) -> bytes:
    """The document with so much text in it that it is not read whole."""
    text = {"text": 'say "usage": {"total_tokens": 5} and \\ ' * (size // 30), "deep": [{"usage": {"n": 1}}, [[{}]]]}
    return json.dumps({**document, **text} if last else {**text, **document}).encode()


def stream(*events: dict[str, Any], end: bytes = b"data: [DONE]\n\n") -> bytes:
    return b"".join(b"event: x\r\ndata: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events) + end


ANTHROPIC = stream(
    {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 25, "output_tokens": 1}}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 'my "usage" is low'}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}},
    {"type": "message_stop"},
    end=b"",
)
RESPONSES = stream(
    {"type": "response.created", "response": {"usage": None}},
    {"type": "response.completed", "response": {"output": [], "usage": {"input_tokens": 3, "output_tokens": 4}}},
)
OLLAMA = b'{"message": {"content": "a"}, "done": false}\n{"done": true, "prompt_eval_count": 26, "eval_count": 298}\n'
SSE, NDJSON = "text/event-stream; charset=utf-8", "application/x-ndjson"

# fmt: off
CASES: list[tuple[str, bytes, str, Any]] = [
    ("chat", json.dumps({"choices": [], "usage": CHAT}).encode(), "application/json", CHAT),
    ("embeddings", json.dumps({"data": [{"embedding": [0.5] * 9}], "usage": {"prompt_tokens": 8}}).encode(),
     "application/json; charset=utf-8", {"prompt_tokens": 8}),
    ("long, at the end", padded({"usage": CHAT}), "application/json", CHAT),
    ("long, at the start", padded({"usage": CHAT}, last=True), "application/json", CHAT),
    ("long, of ollama", padded({"prompt_eval_count": 26, "eval_count": 298}), "application/json",
     {"prompt_eval_count": 26, "eval_count": 298}),
    ("long, without any", padded({"id": "x"}), "application/json", None),
    ("long, of a response", padded({"response": {"a": {"usage": {"n": 2}}, "usage": {"n": 1}}}), "application/json",
     {"n": 1}),
    ("long, of another parent", padded({"other": {"usage": {"n": 1}}}), "application/json", None),
    ("chat stream", stream({"choices": [], "usage": None}, {"choices": [], "usage": CHAT}), SSE, CHAT),
    ("anthropic stream", ANTHROPIC, SSE, {"input_tokens": 25, "output_tokens": 15}),
    ("responses stream", RESPONSES, SSE, {"input_tokens": 3, "output_tokens": 4}),
    ("a long event", b"data: " + padded({"response": {"usage": {"input_tokens": 3}}}) + b"\n\n", SSE,
     {"input_tokens": 3}),
    ("ollama stream", OLLAMA, NDJSON, {"prompt_eval_count": 26, "eval_count": 298}),
    ("ollama", OLLAMA.splitlines()[1], "application/json", {"prompt_eval_count": 26, "eval_count": 298}),
    ("inside a text", json.dumps({"text": '{"usage": {"total_tokens": 5}}'}).encode(), "application/json", None),
    ("further down", json.dumps({"choices": [{"usage": {"n": 1}}]}).encode(), "application/json", None),
    ("what is no count", json.dumps({"usage": {"a": -1, "b": True, "c": "9", "d": 1.5, "e": None, "f": {"g": {}}}})
     .encode(), "application/json", None),
    ("no object", b'[{"usage": {"n": 1}}]', "application/json", None),
    ("no object, long", b'[{"usage": {"n": 1}}' + b" " * WHOLE_BYTES + b"]", "application/json", None),
    ("broken", b'{"usage": {"n": 1}', "application/json", None),
    ("another type", json.dumps({"usage": CHAT}).encode(), "text/html", None),
    ("nothing", b"", "application/json", None),
]
# fmt: on


@pytest.mark.parametrize("piece", [65_536, 1_000, 1])
@pytest.mark.parametrize(("name", "body", "media_type", "expected"), CASES, ids=[case[0] for case in CASES])
def test_usage_is_found(name: str, body: bytes, media_type: str, expected: Any, piece: int) -> None:
    assert read(body, media_type, piece) == expected


_TEXTS = st.text(max_size=8) | st.sampled_from(["usage", "response", "message", '"', "\\", '"usage":'])
_VALUES = st.recursive(
    st.none() | st.integers(0, 99) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(_TEXTS, _VALUES, max_size=6), st.integers(1, 50), st.booleans())
def test_a_long_document_says_what_a_short_one_does(document: dict[str, Any], piece: int, ascii_only: bool) -> None:
    body = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    # Blanks between the first brace and what follows make it long, and change nothing.
    assert read(b"{" + b" " * WHOLE_BYTES + body[1:], piece=piece) == read(body)


@pytest.mark.parametrize("name", ["\\ud800", "\\u0000", "", "n" * 101, "\\u00fc"])
def test_a_name_that_is_no_name_of_a_count_is_left_out(name: str) -> None:
    """Half of a surrogate pair above all, which could not be stored: an answer that can't be is asked for again."""
    body = f'{{"usage": {{"{name}": 1, "total_tokens": 2, "details": {{"{name}": 3, "n": 4}}}}}}'.encode()
    assert read(body) == {"total_tokens": 2, "details": {"n": 4}}


def test_a_stream_does_not_pile_counts_up() -> None:
    events = [{"usage": {f"n{number}": number, "total_tokens": number}} for number in range(10 * MAX_COUNTS)]
    found = read(stream(*events), SSE)
    assert len(found) == MAX_COUNTS
    assert found["total_tokens"] == 10 * MAX_COUNTS - 1


def test_a_document_of_brackets_is_given_up() -> None:
    usage = Usage("application/json")
    usage.feed(b'{"usage": {"n": 1}, "a": [' + b"[]," * MAX_TOKENS + b'[]], "b": 1}')
    assert usage.end() is None


@pytest.mark.parametrize(
    "piece", [b'"' + b"x" * 65_000, b"[" * 65_000, b"\\" * 65_000, b"\\u0041" * 10_000, b"\n" * 99]
)
@pytest.mark.parametrize("media_type", ["application/json", SSE])
def test_memory_does_not_grow_with_the_body(piece: bytes, media_type: str) -> None:
    usage = Usage(media_type)
    usage.feed(b'{"a": "')
    tracemalloc.start()
    try:
        for _ in range(100):  # six megabytes, mostly
            usage.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
