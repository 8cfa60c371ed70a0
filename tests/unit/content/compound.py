"""OLE2 compound files, the container of Office before 2007 and of every Office document with a password."""

from __future__ import annotations

import struct

SECTOR = 512
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
# Shorter streams would live in a mini stream; padded, a file needs none.
_MIN_STREAM = 4096


def make_compound(streams: dict[str, bytes]) -> bytes:
    """A compound file (MS-CFB version 3) with these streams in its root; at most 100 sectors of them."""
    padded = {name: data.ljust(_MIN_STREAM, b"\0") for name, data in streams.items()}
    directory_sectors = -(-(len(padded) + 1) // 4)
    fat = [_FAT, *_chain(1, directory_sectors)]
    entries = [_entry("Root Entry", 5, child=1 if padded else _FREE)]
    contents = b""
    # The siblings hang in one line to the right, in the order that CFB sorts by: length, then name.
    names = sorted(padded, key=lambda name: (len(name), name.upper()))
    for number, name in enumerate(names, 1):
        data = padded[name] + b"\0" * (-len(padded[name]) % SECTOR)
        right = number + 1 if number < len(names) else _FREE
        entries.append(_entry(name, 2, right=right, start=len(fat), size=len(padded[name])))
        fat += _chain(len(fat), len(data) // SECTOR)
        contents += data
    directory = b"".join(entries).ljust(directory_sectors * SECTOR, b"\0")
    table = struct.pack("<128I", *(fat + [_FREE] * (128 - len(fat))))
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        *(0x3E, 3, 0xFFFE, 9, 6),
        *(0, 1, 1, 0, _MIN_STREAM, _END, 0, _END, 0),
    )
    return header + struct.pack("<109I", 0, *[_FREE] * 108) + table + directory + contents


def _chain(start: int, length: int) -> list[int]:
    return [*range(start + 1, start + length), _END]


def _entry(name: str, kind: int, *, child: int = _FREE, right: int = _FREE, start: int = 0, size: int = 0) -> bytes:
    wide = name.encode("utf-16-le") + b"\0\0"
    return struct.pack("<64sHBBIII36xIQ", wide, len(wide), kind, 1, _FREE, right, child, start, size)
