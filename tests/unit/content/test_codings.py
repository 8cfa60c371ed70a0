"""Content codings: whatever the pieces a body comes in, it comes out whole, within the limit, or as a typed error."""

from __future__ import annotations

import gzip
import itertools
import sys
import zlib
from collections.abc import Callable

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sift.content.codings import MAX_MEMBERS, PIECE_BYTES, Unpacker
from sift.errors import TargetFailed

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMIT = 20 << 20
TEXT = b"The tide tables of the northern harbour. " * 200


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


PACK: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw": ("deflate", raw_deflate),
    "br": ("br", lambda data: brotli.compress(data, quality=4)),
    "zstd": ("zstd", zstd.compress),
}
FORMS = sorted(PACK)


def unpack(codings: list[str], pieces: list[bytes], limit: int = LIMIT) -> tuple[bytes, Unpacker]:
    unpacker = Unpacker(codings, limit)
    out = [piece for data in pieces for piece in unpacker.feed(data)]
    unpacker.end()
    assert all(len(piece) <= PIECE_BYTES for piece in out if codings)
    return b"".join(out), unpacker


def failure(codings: list[str], pieces: list[bytes], limit: int = LIMIT) -> str:
    with pytest.raises(TargetFailed) as caught:
        unpack(codings, pieces, limit)
    assert caught.value.detail
    return caught.value.code


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(FORMS), max_size=2),
    st.binary(max_size=2000).map(lambda data: data * 3),
    st.lists(st.integers(0, 4000), max_size=8),
)
def test_what_was_packed_comes_out(forms: list[str], body: bytes, cuts: list[int]) -> None:
    packed = body
    for form in forms:
        packed = PACK[form][1](packed)
    edges = [0, *sorted(min(cut, len(packed)) for cut in cuts), len(packed)]
    pieces = [packed[start:end] for start, end in itertools.pairwise(edges)]
    found, unpacker = unpack([PACK[form][0] for form in forms], pieces)
    assert found == body
    assert not unpacker.trailing


@pytest.mark.parametrize("form", FORMS)
def test_byte_by_byte(form: str) -> None:
    coding, pack = PACK[form]
    assert unpack([coding], [bytes([byte]) for byte in pack(TEXT)])[0] == TEXT


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_that_breaks_off_is_damaged(form: str) -> None:
    coding, pack = PACK[form]
    packed = pack(TEXT)
    for length in (1, 2, len(packed) // 2, len(packed) - 1):
        assert failure([coding], [packed[:length]]) == "damaged", length


@pytest.mark.parametrize("form", FORMS)
def test_no_bytes_are_an_empty_body(form: str) -> None:
    assert unpack([PACK[form][0]], [b"", b""])[0] == b""
    assert unpack([PACK[form][0]], [])[0] == b""


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
@settings(max_examples=200, deadline=None)
@given(body=st.binary(min_size=1, max_size=300))
def test_rubbish_is_damaged_or_small(coding: str, body: bytes) -> None:
    try:
        found, _ = unpack([coding, coding], [body])
    except TargetFailed as error:
        assert error.code == "damaged"  # noqa: PT017 (whatever else escapes fails the test)
    else:
        assert len(found) < LIMIT


def test_every_member_of_a_gzip_file_and_every_frame_of_zstd_counts() -> None:
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00none"
    for coding, packed in (
        ("gzip", gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")),
        ("zstd", zstd.compress(b"one ") + skippable + zstd.compress(b"two")),
    ):
        for pieces in ([packed], [bytes([byte]) for byte in packed]):
            found, unpacker = unpack([coding], pieces)
            assert (found, unpacker.trailing) == (b"one two", False)


@pytest.mark.parametrize("form", ["gzip", "zlib", "raw", "zstd"])
@pytest.mark.parametrize("rest", [b"\x00" * 512, b"garbage", b"\x1f", b"\x28\xb5"])
def test_what_follows_the_end_is_left_out_and_noted(form: str, rest: bytes) -> None:
    coding, pack = PACK[form]
    for pieces in ([pack(TEXT) + rest], [pack(TEXT), rest], [pack(TEXT), rest[:1], rest[1:]]):
        found, unpacker = unpack([coding], pieces)
        assert (found, unpacker.trailing) == (TEXT, True)


def test_what_follows_the_end_of_brotli_is_damage() -> None:
    for pieces in ([brotli.compress(TEXT) + b"garbage"], [brotli.compress(TEXT), b"garbage"]):
        assert failure(["br"], pieces) == "damaged"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1])
def test_the_limit_is_exact(form: str, size: int) -> None:
    coding, pack = PACK[form]
    packed = pack(bytes(size))
    if size == LIMIT:
        assert len(unpack([coding], [packed])[0]) == size
    else:
        assert failure([coding], [packed]) == "too_large"
    assert failure([], [bytes(11), bytes(10)], limit=20) == "too_large"


@pytest.mark.parametrize("form", FORMS)
def test_a_bomb_stops_at_the_limit(form: str) -> None:
    """No more is unpacked than the limit and one piece, however much there would be."""
    coding, pack = PACK[form]
    unpacker = Unpacker([coding], LIMIT)
    taken: list[int] = []
    with pytest.raises(TargetFailed) as caught:
        taken.extend(len(piece) for piece in unpacker.feed(pack(bytes(64 << 20))))
    assert caught.value.code == "too_large"
    assert LIMIT - PIECE_BYTES <= sum(taken) <= LIMIT


@pytest.mark.parametrize("inner", FORMS)
def test_a_bomb_between_two_codings_is_counted_too(inner: str) -> None:
    """The outer layer gives 64 MiB, of which the inner one takes nothing."""
    coding, pack = PACK[inner]
    outer = gzip.compress(pack(b"x") + bytes(64 << 20), 1)
    assert failure([coding, "gzip"], [outer]) == ("damaged" if inner == "br" else "too_large")


def test_a_bomb_of_members() -> None:
    fine = gzip.compress(b"") * MAX_MEMBERS
    assert unpack(["gzip"], [fine])[0] == b""
    assert failure(["gzip"], [fine + gzip.compress(b"")]) == "damaged"
    assert failure(["zstd"], [zstd.compress(b"") * (MAX_MEMBERS + 1)]) == "damaged"


def test_a_zstd_window_beyond_what_the_web_uses_is_refused() -> None:
    options = {zstd.CompressionParameter.window_log: 24, zstd.CompressionParameter.compression_level: 1}
    stream = zstd.ZstdCompressor(options=options)
    packed = stream.compress(bytes(32 << 20)) + stream.flush()
    assert failure(["zstd"], [packed], limit=64 << 20) == "damaged"
