"""Takes content codings off a body as it arrives, in bounded pieces, every layer within the limit.

httpx2 has decoders of its own. These also notice a stream that breaks off, read each member of a gzip file and each
frame of zstd, take raw deflate however its first bytes are split, count what lies between two codings, and refuse the
windows of up to 2 GB that zstd knows.
"""

from __future__ import annotations

import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import brotli  # type: ignore[import-untyped]

from sift.content.responses import too_large
from sift.errors import TargetFailed

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE_BYTES = 1 << 20
#: Members of one gzip or frames of one zstd stream: block compressors make one per 64 KiB, a bomb one per 20 bytes.
MAX_MEMBERS = 1024
#: RFC 9659: a zstd content coding needs no window over 8 MiB.
ZSTD_WINDOW_LOG = 23

_GZIP = b"\x1f\x8b"
_ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60)))


class Decoder(Protocol):
    """Takes one coding off."""

    #: Whether bytes after the end of the stream were left out.
    trailing: bool

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode some more, in pieces of about `PIECE_BYTES`. Raises TargetFailed damaged."""
        ...

    def end(self) -> None:
        """Raise TargetFailed damaged when the stream has begun and not ended."""
        ...


class Unpacker:
    """Takes codings off, the last applied first; no layer may give more than `limit` bytes."""

    def __init__(self, codings: Sequence[str], limit: int) -> None:
        self._decoders = [_DECODERS[coding]() for coding in reversed(codings)] or [_Identity()]
        self._sizes = [0] * len(self._decoders)
        self._limit = limit

    @property
    def trailing(self) -> bool:
        """Whether bytes after the end of a stream were left out."""
        return any(decoder.trailing for decoder in self._decoders)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode some more. Raises TargetFailed damaged or too_large."""
        pieces: Iterator[bytes] = iter((data,))
        for layer in range(len(self._decoders)):
            pieces = self._layer(layer, pieces)
        return pieces

    def end(self) -> None:
        """The body is over. Raises TargetFailed damaged when it broke off."""
        for decoder in self._decoders:
            decoder.end()

    def _layer(self, layer: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            for decoded in self._decoders[layer].feed(piece):
                self._sizes[layer] += len(decoded)
                if self._sizes[layer] > self._limit:
                    raise too_large(f"The document is over {self._limit} bytes decoded.")
                yield decoded


class _Identity:
    trailing = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def end(self) -> None:
        pass


class _Members(ABC):
    """A stream of members (gzip) or frames (zstd), each with a decompressor of its own."""

    def __init__(self, magics: tuple[bytes, ...]) -> None:
        self._magics = magics
        self._member: Any = None
        self._count = 0
        self._held = b""
        self.trailing = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self.trailing:
            if self._member is None:
                data = self._held + data
                if not self._begin(data):
                    return
            yield from self._inflate(data)
            if not self._member.eof:
                return
            data = self._member.unused_data
            self._member = None

    def end(self) -> None:
        if self._member is not None or (self._held and not self._count):
            raise _damaged("The compressed body breaks off.")
        self.trailing = self.trailing or bool(self._held)

    def _begin(self, data: bytes) -> bool:
        """Start the member that `data` begins with; False when it is too short to tell, or what follows is none."""
        size = len(self._magics[0])
        if len(data) < size and any(magic.startswith(data) for magic in self._magics):
            self._held = data
            return False
        self._held = b""
        if data[:size] not in self._magics:
            if not self._count:
                raise _damaged("The body does not match its Content-Encoding.")
            self.trailing = True  # as browsers do
            return False
        self._count += 1
        if self._count > MAX_MEMBERS:
            raise _damaged("The compressed body is in too many parts.")
        self._member = self._open()
        return True

    @abstractmethod
    def _open(self) -> Any:
        """A decompressor for the next member."""

    @abstractmethod
    def _inflate(self, data: bytes) -> Iterator[bytes]:
        """What the member's next bytes unpack to."""


class _Gzip(_Members):
    def __init__(self) -> None:
        super().__init__((_GZIP,))

    def _open(self) -> Any:
        return zlib.decompressobj(zlib.MAX_WBITS | 16)

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        return _inflate(self._member, data)


class _Zstd(_Members):
    def __init__(self) -> None:
        super().__init__(_ZSTD)

    def _open(self) -> Any:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG})

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        try:
            piece = self._member.decompress(data, PIECE_BYTES)
            while piece:
                yield piece
                if self._member.eof or self._member.needs_input:
                    return
                piece = self._member.decompress(b"", PIECE_BYTES)
        except zstd.ZstdError as error:
            raise _damaged("The body does not match its Content-Encoding.") from error


class _Deflate:
    """With the zlib header that the coding is defined with, or raw, as some servers send it."""

    def __init__(self) -> None:
        self._held = b""
        self._stream: Any = None
        self.trailing = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._stream is None:
            data = self._held = self._held + data
            if len(data) < 2:
                return
            # RFC 1950: method 8, and a check over both bytes; no raw stream begins so.
            wrapped = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        if self._stream.eof:
            self.trailing = self.trailing or bool(data)
            return
        yield from _inflate(self._stream, data)
        self.trailing = bool(self._stream.unused_data)

    def end(self) -> None:
        if self._held and not (self._stream is not None and self._stream.eof):
            raise _damaged("The compressed body breaks off.")


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._begun = False
        self.trailing = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not data:
            return
        self._begun = True
        try:
            # It may give nearly twice what is asked for.
            piece = self._stream.process(data, output_buffer_limit=PIECE_BYTES // 2)
            while piece:
                yield piece
                piece = self._stream.process(b"", output_buffer_limit=PIECE_BYTES // 2)
        except brotli.error as error:  # bytes after the end among them: it does not say where that was
            raise _damaged("The body does not match its Content-Encoding.") from error

    def end(self) -> None:
        if self._begun and not self._stream.is_finished():
            raise _damaged("The compressed body breaks off.")


_DECODERS: dict[str, type[Decoder]] = {"gzip": _Gzip, "deflate": _Deflate, "br": _Brotli, "zstd": _Zstd}


def _inflate(stream: Any, data: bytes) -> Iterator[bytes]:
    try:
        piece = stream.decompress(data, PIECE_BYTES)
        while piece:
            yield piece
            piece = stream.decompress(stream.unconsumed_tail, PIECE_BYTES)
    except zlib.error as error:
        raise _damaged("The body does not match its Content-Encoding.") from error


def _damaged(detail: str) -> TargetFailed:
    return TargetFailed("damaged", detail, "The site sent it so; try it again later.")
